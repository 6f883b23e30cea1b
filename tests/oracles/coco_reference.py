"""pycocotools itself, run in memory and silent, as the oracle of COCO's protocol."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Sequence
from typing import Any

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

Json = dict[str, Any]

KEYS = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]


def evaluate_coco(annotations: Json, results: Sequence[Json], iou: str) -> dict[str, float | None]:
    """COCO's twelve metrics, None where pycocotools says -1.

    `COCO.loadRes` fails on an empty results list; here that is a file without
    detections, so a class with ground truth gets 0.
    """
    with contextlib.redirect_stdout(io.StringIO()):
        run = _run(annotations, results, iou, [1, 10, 100])
        run.summarize()
    return {
        key: None if value == -1 else float(value)
        for key, value in zip(KEYS, run.stats, strict=True)
    }


def evaluate_coco_at(
    annotations: Json, results: Sequence[Json], iou: str, max_dets: int
) -> dict[str, float | None]:
    """AP, AP50, AP75 and AR with another limit per image and class, as V3Det's evaluator asks
    pycocotools: `maxDets = [300]`."""
    with contextlib.redirect_stdout(io.StringIO()):
        run = _run(annotations, results, iou, [max_dets])
    precision, recall = run.eval["precision"][:, :, :, 0, 0], run.eval["recall"][:, :, 0, 0]
    parts = {"AP": precision, "AP50": precision[:1], "AP75": precision[5:6], "AR": recall}
    return {
        key: float(values[values > -1].mean()) if (values > -1).any() else None
        for key, values in parts.items()
    }


def recall_of_any_class(
    annotations: Json, results: Sequence[Json], iou: str, limits: Sequence[int]
) -> dict[int, dict[str, float | None]]:
    """AR, ARs, ARm and ARl at each limit per image, by `useCats = 0`."""
    with contextlib.redirect_stdout(io.StringIO()):
        run = _run(annotations, results, iou, list(limits), use_classes=False)
    found = {}
    for place, limit in enumerate(sorted(set(limits))):
        recall = run.eval["recall"][:, 0, :, place]
        found[limit] = {
            f"AR{name}": float(values.mean()) if (values > -1).all() else None
            for name, values in zip(["", "s", "m", "l"], recall.T, strict=True)
        }
    return found


def _run(
    annotations: Json,
    results: Sequence[Json],
    iou: str,
    max_dets: list[int],
    *,
    use_classes: bool = True,
) -> COCOeval:
    """A COCOeval before its summary."""
    truth = _index(copy.deepcopy(annotations))
    if results:
        found = truth.loadRes(copy.deepcopy(list(results)))
    else:
        found = _index({**truth.dataset, "annotations": []})
    run = COCOeval(truth, found, iou)
    run.params.maxDets = max_dets
    run.params.useCats = int(use_classes)
    run.evaluate()
    run.accumulate()
    return run


def _index(dataset: Json) -> COCO:
    """A COCO object over the data in memory; its constructor only reads a file."""
    coco = COCO()
    coco.dataset = dataset
    coco.createIndex()
    return coco
