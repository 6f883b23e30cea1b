"""The kinds of error, and which kind each detection is.

The kinds, their order and their limits are TIDE's (Bolya et al., ECCV 2020), as tidecv 1.0.1 tests
them; what counts at all is decided by matching, which knows the federated lists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.evaluation.pair import Pair
from lvdet.matching.match import found_columns, require_masks, truth_columns
from lvdet.tables.matches import Matches
from lvdet.threads import thread_count

#: Five kinds of incorrect detections, and objects that no detection finds.
KINDS = ("classification", "localisation", "both", "duplicate", "background", "missed")
CLASSIFICATION, LOCALISATION, BOTH, DUPLICATE, BACKGROUND, MISSED = range(len(KINDS))
#: What a detection can be: one of these by its number in `Rows.kind`.
ROW_KINDS = (*KINDS, "right", "not counted")
RIGHT, NOT_COUNTED = len(KINDS), len(KINDS) + 1
#: Rows whose nearest objects are looked for together: 24 bytes each.
_TOGETHER = 1 << 21


@dataclass(frozen=True, eq=False)
class Rows:
    """The matched detections, in the order of `Matches`, and the kind of each.

    detection: [K] int32, row of `Results.detections`, of the pair that was diagnosed
    category:  [K] int32, its class
    kind:      [K] uint8, number in `ROW_KINDS`; "not counted" are detections outside the budget,
               ignored ones, and those of a class not exhaustively annotated in the image
    target:    [K] int32, row of `GroundTruth`: the object that a correct detection found; one of
               another class (classification), overlapped too little (localisation), found already
               (duplicate), or just the nearest (both, background); -1 if there is none
    overlap:   [K] float64, IoU with the target; NaN for correct detections and for those not
               counted
    """

    detection: NDArray[np.int32]
    category: NDArray[np.int32]
    kind: NDArray[np.uint8]
    target: NDArray[np.int32]
    overlap: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.kind)


def explain(
    pair: Pair,
    matches: Matches,
    threshold: int,
    counted: NDArray[np.bool_],
    objects: NDArray[np.bool_],
    *,
    foreground: float,
    background: float,
) -> Rows:
    """Classifies each matched detection.

    matches: with partners at the threshold `foreground`, whose place is `threshold`
    counted: [K] those that the budget keeps; objects: [M] those that count

    Wrong ones are tested in this order, IoU being the highest with an object of the image:
    localisation, background ≤ IoU ≤ foreground with its own class; classification, IoU ≥
    foreground with another class; duplicate, IoU > foreground with its own, all of which better
    detections took; background, IoU ≤ background with everything; both, the rest. Among equal
    overlaps the annotation that comes first in the file is the target.
    """
    assert matches.partner is not None
    matched, ignore = matches.flags(threshold)
    kind = np.full(len(matches), NOT_COUNTED, dtype=np.uint8)
    target = np.full(len(matches), -1, dtype=np.int32)
    overlap = np.full(len(matches), np.nan)
    right = counted & matched & ~ignore
    kind[right] = RIGHT
    target[right] = matches.partner[right]
    wrong = np.flatnonzero(counted & ~matched & ~ignore).astype(np.int32)
    detection = pair.results.table_rows(matches.detection)
    for first in range(0, len(wrong), _TOGETHER):
        some = wrong[first : first + _TOGETHER]
        truth, iou = _nearest(pair, detection[some], objects)
        same, other = iou[:, 0], iou[:, 1]
        found = np.select(
            [
                (same >= background) & (same <= foreground),
                other >= foreground,
                same >= foreground,
                np.maximum(same, other) <= background,
            ],
            list(map(np.uint8, (LOCALISATION, CLASSIFICATION, DUPLICATE, BACKGROUND))),
            default=np.uint8(BOTH),
        )
        own = (found == LOCALISATION) | (found == DUPLICATE)
        own |= (found != CLASSIFICATION) & (same >= other)
        kind[some] = found
        target[some] = np.where(own, truth[:, 0], truth[:, 1])
        overlap[some] = np.where(own, same, other)
    return Rows(detection, matches.category, kind, target, overlap)


def _nearest(
    pair: Pair, rows: NDArray[np.int32], objects: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """[R, 2] the objects that detections overlap most, of their own class and of another; the
    overlaps with them."""
    gt, detections = pair.gt, pair.results.detections
    masks = pair.iou != "bbox"
    out = _native.nearest_objects(
        truth_columns(gt, masks=masks),
        found_columns(gt, detections, masks=masks),
        target=objects.view(np.uint8),
        rows=rows,
        overlap=pair.iou,
        threads=thread_count(),
    )
    require_masks(out["failure"], gt, detections)
    return out["truth"], out["overlap"]
