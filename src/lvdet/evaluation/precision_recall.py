"""Precision at each recall, for plots: of every class, and of pools of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.average_precision import RECALLS, class_precision
from lvdet.evaluation.pair import Pair
from lvdet.limits.budgets import Budget, describe

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Curves under one budget; NaN if there is nothing to find.

    recalls:    [101]
    classes:    [C, 101] mean over the IoU thresholds, so that a curve's mean is the class's AP
    classes_50: [C, 101] at the first IoU threshold
    pools:      [101] each, the mean over IoU thresholds of all classes in one ranking ("all"), and
                of the classes of each frequency: a curve's mean is AP-Pool
    budget:     the limits on detections, in words
    """

    recalls: Floats
    classes: Floats
    classes_50: Floats
    pools: dict[str, Floats]
    budget: str


def precision_recall(pair: Pair, budgets: Sequence[Budget]) -> PrecisionRecall:
    """The curves of a pair."""
    every, groups = pair.every_class, pair.gt.categories.groups()
    keep = pair.kept_rows(budgets, every)
    points = class_precision(pair.matches, keep)
    pooled = pair.pools(every, groups).points(pair.kept_together(budgets, every)).mean(axis=1)
    return PrecisionRecall(
        RECALLS,
        points.mean(axis=1),
        points[:, 0],
        dict(zip(("all", *groups), pooled, strict=True)),
        describe(budgets),
    )
