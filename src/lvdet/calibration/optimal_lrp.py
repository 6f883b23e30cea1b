"""Optimal LRP (Oksuz et al., TPAMI 2022): the error of the best score threshold of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lvdet.calibration.located import Located
from lvdet.calibration.maps import Floats

#: What makes up the error, by name in files.
COMPONENTS = ("oLRP", "oLRP_loc", "oLRP_fp", "oLRP_fn")


@dataclass(frozen=True, eq=False)
class OptimalLrp:
    """The lowest LRP error of each class ([C] each), NaN where undefined.

    threshold: the score from which detections are kept; NaN where none is correct
    error:     the LRP error of what is kept, 1 where none is correct; NaN without objects
    localisation:    mean 1 − IoU of the correct ones that are kept
    false_positives: share of incorrect detections among those kept
    false_negatives: share of objects not found
    kept:      detections at or above the threshold; 0 without a threshold
    """

    threshold: Floats
    error: Floats
    localisation: Floats
    false_positives: Floats
    false_negatives: Floats
    kept: Floats

    def components(self) -> dict[str, Floats]:
        """The components by name, [C] each."""
        parts = (self.error, self.localisation, self.false_positives, self.false_negatives)
        return dict(zip(COMPONENTS, parts, strict=True))


def optimal_lrp(rows: Located, iou_threshold: float) -> OptimalLrp:
    """The threshold of each class at which its LRP error is lowest; the highest such threshold
    among equals.

    With TP and FP correct and incorrect detections from a score on, of N objects, the error is
    (Σ (1 − IoU) / (1 − threshold) over TP, + FP + N − TP) / (FP + N). All detections of one score
    are kept or none.
    """
    table = np.full((6, len(rows.objects)), np.nan)
    table[5] = 0
    for row, some in enumerate(rows.class_rows()):
        objects = int(rows.objects[row])
        if not objects:
            continue
        right, score = rows.right[some], rows.score[some]
        if not right.any():
            table[1, row] = table[4, row] = 1
            continue
        found, wrong = np.cumsum(right), np.cumsum(~right)
        distance = np.cumsum(np.where(right, 1 - rows.overlap[some], 0.0))
        error = (distance / (1 - iou_threshold) + wrong + objects - found) / (wrong + objects)
        last = np.append(score[1:] != score[:-1], True)  # of equal scores
        at = int(np.argmin(np.where(last & (found > 0), error, np.inf)))
        table[:, row] = (
            score[at],
            error[at],
            distance[at] / found[at],
            wrong[at] / (at + 1),
            1 - found[at] / objects,
            at + 1,
        )
    return OptimalLrp(*table)
