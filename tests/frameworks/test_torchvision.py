"""torchvision's Mask R-CNN of random weights, in one process and in two."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision

from lvdet.integrations.torchvision import CocoEvaluator

pytestmark = pytest.mark.frameworks

CLASSES = 5


@pytest.fixture(scope="module")
def outputs() -> dict[int, Any]:
    """What the model finds in six images of noise."""
    torch.manual_seed(0)
    model = torchvision.models.detection.maskrcnn_resnet50_fpn(
        weights=None,
        weights_backbone=None,
        num_classes=CLASSES,
        min_size=64,
        max_size=96,
        box_score_thresh=0.0,
        box_detections_per_img=20,
    ).eval()
    images = [torch.rand(3, 64, 80) for _ in range(6)]
    with torch.no_grad():
        return dict(enumerate(model(images), start=1))


@pytest.fixture(scope="module")
def annotations(outputs: dict[int, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every third detection is an object, a little beside."""
    rows = []
    for image, one in outputs.items():
        assert len(one["boxes"])
        for (x1, y1, x2, y2), label in list(
            zip(one["boxes"].tolist(), one["labels"].tolist(), strict=True)
        )[::3]:
            corners = [x1, y1, x2, y1, x2, y2, x1, y2]
            box = [x1 + 1, y1, x2 - x1, y2 - y1]
            row = {"image_id": image, "category_id": label, "bbox": box, "iscrowd": 0}
            rows.append({**row, "segmentation": [corners], "area": box[2] * box[3]})
    dataset = {
        "images": [{"id": one, "height": 64, "width": 80} for one in outputs],
        "categories": [{"id": one, "name": str(one)} for one in range(1, CLASSES)],
        "annotations": [{"id": number, **one} for number, one in enumerate(rows, start=1)],
    }
    path = tmp_path_factory.mktemp("torchvision") / "annotations.json"
    path.write_text(json.dumps(dataset))
    return path


def stats(annotations: Path, outputs: dict[int, Any], images: list[int]) -> list[list[float]]:
    evaluator = CocoEvaluator(annotations, ["bbox", "segm"])
    for image in images:
        evaluator.update({image: outputs[image]})
    evaluator.synchronize_between_processes()
    with contextlib.redirect_stdout(io.StringIO()):
        evaluator.accumulate()
        evaluator.summarize()
    return [one.stats.tolist() for one in evaluator.coco_eval.values()]


def process(rank: int, folder: Path, annotations: Path) -> None:
    """One of two: the first has four images, the second three, of which one is the first's."""
    address = f"file://{folder / 'meeting'}"
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    outputs = torch.load(folder / "outputs.pt", weights_only=True)
    images = [1, 2, 3, 4] if rank == 0 else [4, 5, 6]
    (folder / f"{rank}.json").write_text(json.dumps(stats(annotations, outputs, images)))
    torch.distributed.destroy_process_group()


def test_two_processes_equal_one(
    outputs: dict[int, Any], annotations: Path, tmp_path: Path
) -> None:
    whole = stats(annotations, outputs, list(outputs))
    assert np.mean(whole[0]) > 0.01
    torch.save(outputs, tmp_path / "outputs.pt")
    sys.stdout.flush()
    torch.multiprocessing.spawn(process, (tmp_path, annotations), nprocs=2)
    for rank in (0, 1):
        assert json.loads((tmp_path / f"{rank}.json").read_text()) == whole


def test_fixed_and_pool(outputs: dict[int, Any], annotations: Path) -> None:
    evaluator = CocoEvaluator(annotations, ["bbox", "segm"])
    evaluator.update(outputs)
    for kind in evaluator.iou_types:
        result = evaluator.lvdet_evaluation(kind)
        assert set(result) == {"old", "fixed", "pool"}
        old, *_ = stats(annotations, outputs, list(outputs))[kind == "segm"]
        assert pytest.approx(old) == result["old"].AP
