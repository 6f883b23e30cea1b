"""Precision at each recall, to be drawn: of every class, and of pools of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.average_precision import RECALLS, class_precision
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.pooled import Pools
from lvdet.limits.budgets import Budget, describe
from lvdet.tables.matches import Matches

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """Curves under one budget; NaN where there is nothing to find.

    recalls:    [101]
    classes:    [C, 101] mean over the IoU thresholds, so that a curve's mean is the class's AP
    classes_50: [C, 101] at the first IoU threshold
    pools:      [101] each, the mean over IoU thresholds of all classes in one ranking ("all"),
                and of the classes of each frequency: a curve's mean is AP-Pool
    budget:     what limits the detections
    """

    recalls: Floats
    classes: Floats
    classes_50: Floats
    pools: dict[str, Floats]
    budget: str


def precision_recall(pair: Pair, matches: Matches, budgets: Sequence[Budget]) -> PrecisionRecall:
    """The curves of a pair, from its matches."""
    gt, ranking = pair.gt, pair.results.ranking
    every = np.arange(len(gt.categories))
    keep = pair.kept(budgets)
    points = class_precision(matches, keep)
    members = {"all": every} | gt.categories.groups()
    pools = Pools(matches, ranking.score, list(members.values()))
    pooled = pools.points(matches.kept(keep)).mean(axis=1)
    return PrecisionRecall(
        RECALLS,
        points.mean(axis=1),
        points[:, 0],
        dict(zip(members, pooled, strict=True)),
        describe(budgets),
    )
