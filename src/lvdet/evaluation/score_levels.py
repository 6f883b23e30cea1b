"""How high the scores of rare, common and frequent classes are (the paper, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.pair import Pair
from lvdet.limits.budgets import Budget
from lvdet.tables.problems import category_rows

#: The shares of detections that lie below each of a level's quantiles.
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class ScoreLevel:
    """The scores of some detections: how many, their mean and their quantiles (`SHARES`)."""

    count: int
    mean: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class ScoreLevels:
    """The scores of each frequency group ("all" if there are none).

    relative: whether scores are divided by the mean score of frequent classes; not if there are
        none, or if that mean is not positive
    budget: the limits on detections, in words
    """

    levels: dict[str, ScoreLevel]
    relative: bool
    budget: str


def score_levels(pair: Pair, budget: Budget) -> ScoreLevels:
    """The score levels of the detections that a budget keeps, verified or not."""
    gt, ranking = pair.gt, pair.results.ranking
    keep = pair.kept([budget])
    known = category_rows(gt, ranking)
    groups = gt.categories.groups() or {"all": np.arange(len(gt.categories))}
    levels = {}
    for name, classes in groups.items():
        member = np.isin(known, classes)[ranking.category]
        if keep is not None:
            member &= keep
        levels[name] = _level(ranking.score[member])
    frequent = levels["f"].mean if "f" in levels else float("nan")
    relative = frequent > 0
    if relative:
        levels = {name: _scaled(one, frequent) for name, one in levels.items()}
    return ScoreLevels(levels, relative, str(budget))


def _level(score: NDArray[np.float64]) -> ScoreLevel:
    if not len(score):
        nan = float("nan")
        return ScoreLevel(0, nan, (nan,) * len(SHARES))
    quantiles = np.quantile(score, SHARES).tolist()
    return ScoreLevel(len(score), float(score.mean()), tuple(quantiles))


def _scaled(level: ScoreLevel, unit: float) -> ScoreLevel:
    return ScoreLevel(
        level.count, level.mean / unit, tuple(value / unit for value in level.quantiles)
    )
