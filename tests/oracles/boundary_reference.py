"""Boundary IoU by faster-coco-eval.

It combines the two overlaps as the Boundary IoU authors' LVIS and COCO tools do: the
smaller of mask IoU and boundary IoU. For crowds it uses the mask overlap alone
(intersection over the detection's area); their boundary plays no part. A boundary is
the mask less its erosion by a 3x3 square, repeated max(1, round(0.02 * diagonal of the
image)) times, where pixels outside the image count as background. The product with
0.02 is taken in float32 there: an exact half rounds down, where the authors' Python
rounds it to even (a 45 x 60 image has depth 1 here, 2 there). `cases` avoids such sizes.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from faster_coco_eval import COCO, COCOeval_faster
from faster_coco_eval.core import mask as faster_mask

Json = dict[str, Any]

DILATION_RATIO = 0.02
KEYS = ["AP", "AP50", "AP75", "APs", "APm", "APl"]


def boundary_ious(
    dt_rles: Sequence[Json], gt_rles: Sequence[Json], iscrowd: Sequence[int]
) -> np.ndarray:
    """Overlaps of shape (detections, ground truths): min(mask IoU, boundary IoU).

    The columns of crowds hold the mask overlap alone, as in faster-coco-eval.
    """
    if not dt_rles or not gt_rles:
        return np.zeros((len(dt_rles), len(gt_rles)))
    crowd = [int(flag) for flag in iscrowd]
    ious = np.array(faster_mask.iou(list(dt_rles), list(gt_rles), crowd))
    edges = np.array(faster_mask.iou(_boundaries(dt_rles), _boundaries(gt_rles), crowd))
    return np.where(np.array(crowd, dtype=bool), ious, np.minimum(ious, edges))


def evaluate_boundary(annotations: Json, results: Sequence[Json]) -> dict[str, float | None]:
    """COCO's AP over boundary IoU, None where undefined.

    A detection's area is w * h if the results carry `bbox`, otherwise its mask's.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of an annotation id of 0
        truth = COCO(copy.deepcopy(annotations))
        found = truth.loadRes(copy.deepcopy(list(results)))
        run = COCOeval_faster(
            truth,
            found,
            iouType="boundary",
            boundary_dilation_ratio=DILATION_RATIO,
            boundary_cpu_count=1,
            rle_iou_max_workers=1,
        )
        run.run()
    return {
        key: None if value == -1 else float(value)
        for key, value in zip(KEYS, run.stats[: len(KEYS)], strict=True)
    }


def _boundaries(rles: Sequence[Json]) -> list[Json]:
    return [faster_mask.rleToBoundary(rle, DILATION_RATIO) for rle in rles]
