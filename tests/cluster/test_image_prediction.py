"""Ray Data writes what the detector returned, and `evaluate` reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from numpy.typing import NDArray
from PIL import Image

import lvdet
from lvdet.cluster import predict

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # Ray Data warns of itself
]
#: Sizes of images, each with as many detections as its place.
SIZES = [(20, 30), (30, 20), (24, 24)]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    for number, (height, width) in enumerate(SIZES):
        pixels = np.full((height, width, 3), number, dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    return folder


def maker(masks: bool = False, **wrong: Any) -> Callable[[], Any]:
    """A detector whose answers say which image they are for. It is defined here because workers do
    not find the modules of tests."""

    def make() -> Any:
        def detect(images: Sequence[NDArray[np.uint8]]) -> list[Mapping[str, Any]]:
            found = []
            for image in images:
                number = int(image[0, 0, 0])
                box = [[1.0, 2.0, 4.0 + number, 8.0]] * number
                mask = np.zeros((number, *image.shape[:2]), dtype=np.uint8)
                mask[:, 2:8, 1:4] = 1
                one = {"boxes": box, "scores": [0.5] * number, "labels": [7] * number}
                found.append(one | ({"masks": mask} if masks else {}) | wrong)
            return found

        return detect

    return make


@pytest.mark.long
@pytest.mark.parametrize("masks", [False, True])
def test_predictions_are_what_the_detector_says(images: Path, tmp_path: Path, masks: bool) -> None:
    predict(maker(masks), str(images), tmp_path / "out", num_gpus=0, batch_size=2)
    info = [
        {"id": 10 + number, "file_name": f"{number}.png", "height": height, "width": width}
        for number, (height, width) in enumerate(SIZES)
    ]
    gt = tmp_path / "gt.json"
    save_annotations(gt, info)
    dt = lvdet.read_detections(tmp_path / "out", images=gt)
    assert sorted(dt.image_ids[dt.image].tolist()) == [11, 12, 12]
    assert sorted(dt.box.tolist()) == [[1, 2, 4, 6], [1, 2, 5, 6], [1, 2, 5, 6]]
    assert (dt.masks is not None) == masks
    if dt.masks is not None:
        for row in range(len(dt)):
            size = [int(dt.masks.height[row]), int(dt.masks.width[row])]
            pixels = coco_mask.decode({"size": size, "counts": dt.masks.row(row)})
            assert pixels[2:8, 1:4].all()
            assert pixels.sum() == 18
    assert lvdet.evaluate(gt, str(tmp_path / "out"), iou="bbox").inputs["detection_count"] == 3


def save_annotations(path: Path, images: list[dict[str, Any]]) -> None:
    truth = {"id": 1, "image_id": 11, "category_id": 7, "bbox": [1, 2, 4, 6], "area": 24}
    classes = [{"id": 7, "name": "cat"}]
    content = {"images": images, "annotations": [truth | {"iscrowd": 0}], "categories": classes}
    path.write_text(json.dumps(content))


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"scores": [0.5, 0.5, 0.5, 0.5]}, "4 scores for "),
        ({"labels": [0.5]}, "labels"),
    ],
)
def test_wrong_answers_are_named(
    images: Path, tmp_path: Path, wrong: dict[str, Any], says: str
) -> None:
    with pytest.raises(Exception, match=says):  # Ray Data's own, around lvdet's
        predict(maker(**wrong), str(images), tmp_path / "out", num_gpus=0)


def test_what_is_refused(images: Path, tmp_path: Path) -> None:
    with pytest.raises(lvdet.InputError, match="box format is 'xyxyn'"):
        predict(maker(), str(images), tmp_path / "out", box_format="xyxyn")
    with pytest.raises(lvdet.InputError, match="the folder is not empty"):
        predict(maker(), str(images), images)
