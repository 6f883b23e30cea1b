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
        truth = _index(copy.deepcopy(annotations))
        if results:
            found = truth.loadRes(copy.deepcopy(list(results)))
        else:
            found = _index({**truth.dataset, "annotations": []})
        run = COCOeval(truth, found, iou)
        run.evaluate()
        run.accumulate()
        run.summarize()
    return {
        key: None if value == -1 else float(value)
        for key, value in zip(KEYS, run.stats, strict=True)
    }


def _index(dataset: Json) -> COCO:
    """A COCO object over the data in memory; its constructor only reads a file."""
    coco = COCO()
    coco.dataset = dataset
    coco.createIndex()
    return coco
