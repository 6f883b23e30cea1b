"""LaECE, LaACE and D-ECE of a matched pair."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.detection_errors import (
    DECE_BINS,
    DECE_IOU_THRESHOLD,
    DECE_MINIMUM_SCORE,
    LAECE_BINS,
    DetectionError,
    binned_gap,
    class_mean,
    localisation_ace,
    localisation_ece,
)
from lvdet.calibration.labelled_scores import require_chances
from lvdet.calibration.located import located
from lvdet.calibration.maps import Floats
from lvdet.evaluation.pair import Pair
from lvdet.tables.columns import take


def localised_errors(
    pair: Pair,
    iou_threshold: float,
    keep: NDArray[np.bool_] | None,
    *,
    budget: str,
    thresholds: str = "",
) -> list[DetectionError]:
    """The three errors of the detections selected by a mask over the ranking ([N], None for all);
    `budget` and `thresholds` describe the mask. LaECE and LaACE come from a match at
    `iou_threshold`, 0 for any overlap: the pair's own if its options have partners there."""
    score, right, category = _sure(pair, keep)
    placed = located(pair, iou_threshold, keep)
    require_chances(placed.score, lambda _: pair.results.source)
    np.clip(placed.score, 0.0, 1.0, out=placed.score)
    groups = pair.gt.categories.groups()
    suffix = "" if iou_threshold else "_0"

    def by_class(name: str, bins: int | None, values: Floats) -> DetectionError:
        means = {group: class_mean(values, rows) for group, rows in groups.items()}
        return DetectionError(
            f"{name}{suffix}",
            bins,
            iou_threshold,
            budget,
            None,
            thresholds,
            len(placed),
            class_mean(values),
            means,
            values,
        )

    return [
        by_class("LaECE", LAECE_BINS, localisation_ece(placed)),
        by_class("LaACE", None, localisation_ace(placed)),
        DetectionError(
            "D-ECE",
            DECE_BINS,
            DECE_IOU_THRESHOLD,
            budget,
            DECE_MINIMUM_SCORE,
            thresholds,
            len(score),
            binned_gap(score, right, DECE_BINS),
            {
                name: binned_gap(score[some], right[some], DECE_BINS)
                for name, some in ((name, np.isin(category, rows)) for name, rows in groups.items())
            },
        ),
    ]


def _sure(
    pair: Pair, keep: NDArray[np.bool_] | None
) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int32]]:
    """Scores, labels and classes of the detections that D-ECE counts, over all classes together."""
    matches, place = pair.matched_at(DECE_IOU_THRESHOLD)
    right, ignored = matches.flags(place)
    rows = matches.kept(keep)
    score = pair.results.ranking.score
    counted = take(score >= DECE_MINIMUM_SCORE, matches.detection)
    counted &= ~ignored
    if rows is not None:
        counted &= rows
    sure = np.minimum(score[matches.detection[counted]], 1.0)
    return sure, right[counted], matches.category[counted]
