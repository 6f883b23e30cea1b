"""FiftyOne's samples, recorded: there and back, and AP per class beside pycocotools."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lvdet
from integrations.fiftyone_samples import SAMPLES, Json, detection
from lvdet.errors import InputError
from lvdet.integrations.fiftyone import (
    detections_from_fiftyone,
    detections_to_fiftyone,
    ground_truth_from_fiftyone,
    metrics_to_fiftyone,
)
from oracles.coco_reference import evaluate_coco


def test_samples_as_tables() -> None:
    gt = ground_truth_from_fiftyone(SAMPLES, "ground_truth")
    assert gt.categories.names == ("cat", "dog")
    assert gt.images.file_names == tuple(one["filepath"] for one in SAMPLES)
    np.testing.assert_allclose(gt.box[1], [320, 240, 160, 120])
    assert gt.crowd.tolist() == [False, False, False, True]
    assert gt.area[3] == 1234
    dt = detections_from_fiftyone(SAMPLES, "predictions", gt)
    assert dt.image_ids[dt.image].tolist() == [1, 1, 1, 3]
    assert dt.category_ids[dt.category].tolist() == [1, 1, 2, 2]
    np.testing.assert_allclose(dt.box[2], [320, 240, 160, 115.2])
    assert dt.score.tolist() == [0.75, 0.5, 0.25, 0.9]


def test_classes_may_be_given() -> None:
    gt = ground_truth_from_fiftyone(SAMPLES, "ground_truth", classes=["dog", "bird", "cat"])
    assert gt.categories.names == ("dog", "bird", "cat")
    dt = detections_from_fiftyone(SAMPLES, "predictions", gt)
    assert dt.category_ids[dt.category].tolist() == [3, 3, 1, 1]


def test_samples_may_be_fiftyone_s_own_objects() -> None:
    """Which have `to_dict`."""
    objects = [SimpleNamespace(to_dict=lambda one=one: one) for one in SAMPLES]
    gt = ground_truth_from_fiftyone(objects, "ground_truth")
    assert len(detections_from_fiftyone(objects, "predictions", gt)) == 4


@pytest.mark.parametrize("name", ["file_name", "coco_url"])
def test_annotations_from_a_file_know_the_images_by_name(tmp_path: Path, name: str) -> None:
    """Whatever folder FiftyOne has them in; LVIS v1 has addresses alone."""
    path = tmp_path / "annotations.json"
    start = "" if name == "file_name" else "http://images/val2017/"
    images = [{"id": 40 + n, name: f"{start}00000{n}.jpg", "width": 100} for n in (1, 2, 3)]
    classes = [{"id": 7, "name": "dog"}, {"id": 9, "name": "cat"}]
    for one in images:
        one["height"] = 200
    path.write_text(json.dumps({"images": images, "categories": classes, "annotations": []}))
    gt = lvdet.read_ground_truth(path)
    dt = detections_from_fiftyone(SAMPLES, "predictions", gt)
    assert list(detections_to_fiftyone(dt, gt)) == ["000001.jpg", "000002.jpg", "000003.jpg"]
    assert dt.image_ids[dt.image].tolist() == [41, 41, 41, 43]
    assert dt.category_ids[dt.category].tolist() == [9, 9, 7, 7]
    np.testing.assert_allclose(dt.box[0], [10, 40, 30, 80])


def test_there_and_back() -> None:
    gt = ground_truth_from_fiftyone(SAMPLES, "ground_truth")
    dt = detections_from_fiftyone(SAMPLES, "predictions", gt)
    out = json.loads(json.dumps(detections_to_fiftyone(dt, gt)))
    assert list(out) == ["000001.jpg", "000002.jpg", "000003.jpg"]
    again = [{**one, "predictions": out[Path(one["filepath"]).name]} for one in SAMPLES]
    back = detections_from_fiftyone(again, "predictions", gt)
    assert out["000002.jpg"] == {"_cls": "Detections", "detections": []}
    for name in ("image", "category", "score"):
        np.testing.assert_array_equal(getattr(back, name), getattr(dt, name))
    np.testing.assert_allclose(back.box, dt.box, rtol=1e-15)


def test_ap_per_class_is_pycocotools_s() -> None:
    gt = ground_truth_from_fiftyone(SAMPLES, "ground_truth", classes=["dog", "bird", "cat"])
    dt = detections_from_fiftyone(SAMPLES, "predictions", gt)
    out = metrics_to_fiftyone(lvdet.evaluate(gt, dt, iou="bbox"))
    assert json.loads(json.dumps(out, allow_nan=False)) == out
    found = out["old"]["AP_per_class"]
    assert list(found) == ["dog", "bird", "cat"]
    for number, name in enumerate(found, start=1):
        of_class = as_coco(gt)
        for key, field in (("annotations", "category_id"), ("categories", "id")):
            of_class[key] = [one for one in of_class[key] if one[field] == number]
        rows = [one for one in as_records(dt) if one["category_id"] == number]
        expected = evaluate_coco(of_class, rows, "bbox")["AP"]
        assert found[name] == (None if expected is None else pytest.approx(expected))
    assert found["bird"] is None
    assert found["cat"] > 0
    assert "AP_per_class" in out["fixed"]
    assert "AP_per_class" not in out["pool"]  # a pool has one ranking for all classes


def as_coco(gt: lvdet.GroundTruth) -> Json:
    sizes = zip(gt.images.ids.tolist(), gt.images.width, gt.images.height, strict=True)
    return {
        "images": [{"id": one, "width": int(w), "height": int(h)} for one, w, h in sizes],
        "categories": [{"id": one, "name": str(one)} for one in gt.categories.ids.tolist()],
        "annotations": [
            {
                "id": int(gt.id[row]),
                "image_id": int(gt.images.ids[gt.image[row]]),
                "category_id": int(gt.categories.ids[gt.category[row]]),
                "bbox": gt.box[row].tolist(),
                "area": float(gt.area[row]),
                "iscrowd": int(gt.crowd[row]),
            }
            for row in range(len(gt))
        ],
    }


def as_records(dt: lvdet.Detections) -> list[Json]:
    return [
        {
            "image_id": int(dt.image_ids[dt.image[row]]),
            "category_id": int(dt.category_ids[dt.category[row]]),
            "bbox": dt.box[row].tolist(),
            "score": float(dt.score[row]),
        }
        for row in range(len(dt))
    ]


def changed(change: Callable[[Json], Any], field: str = "predictions") -> Callable[[], Any]:
    """Reads a field of the samples after a change to the first."""

    def read() -> Any:
        gt = ground_truth_from_fiftyone(SAMPLES, "ground_truth")
        samples = copy.deepcopy(SAMPLES)
        change(samples[0])
        if field == "predictions":
            return detections_from_fiftyone(samples, field, gt)
        return ground_truth_from_fiftyone(samples, field, classes=["cat", "dog"])

    return read


def test_images_need_names_of_their_own() -> None:
    gt = ground_truth_from_fiftyone([SAMPLES[0], SAMPLES[0]], "ground_truth")
    dt = detections_from_fiftyone([], "predictions", gt)
    with pytest.raises(InputError, match="has images without a file name of their own"):
        detections_to_fiftyone(dt, gt)


def append(field: str, one: Json) -> Callable[[Json], Any]:
    return lambda sample: sample[field]["detections"].append(one)


REFUSALS = {
    "no field 'predictions'": changed(lambda one: one.pop("predictions")),
    "has no Detections": changed(lambda one: one.update(predictions={"_cls": "Classification"})),
    "no class is named 'cow'": changed(
        append("predictions", detection("cow", [0, 0, 1, 1], confidence=1))
    ),
    "a detection has no confidence": changed(append("predictions", detection("cat", [0, 0, 1, 1]))),
    r"bounding_box is \[1\], expected": changed(
        append("predictions", detection("cat", [1], confidence=1))
    ),
    "no filepath": changed(lambda one: one.pop("filepath")),
    "/data/val/000009.jpg": changed(lambda one: one.update(filepath="/data/val/000009.jpg")),
    r"run dataset.compute_metadata\(\)": changed(
        lambda one: one.update(metadata=None), "ground_truth"
    ),
    "no class is named 'hen'": changed(
        append("ground_truth", detection("hen", [0, 0, 1, 1])), "ground_truth"
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_is_missing_is_said_in_one_line(what: str) -> None:
    with pytest.raises(InputError, match=what) as error:
        REFUSALS[what]()
    assert "\n" not in str(error.value)
