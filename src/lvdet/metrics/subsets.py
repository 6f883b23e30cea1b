"""Which classes are meant, and which detections budgets count then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows
from lvdet.tables.results import Ranking


def select(
    gt: GroundTruth,
    classes: str | Iterable[int | str] | None,
    groups: Mapping[str, NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Rows of the classes meant: all, a group, letters of "rcf", names or ids."""
    if classes is None:
        return np.arange(len(gt.categories))
    if isinstance(classes, str) and classes in groups:
        return groups[classes]
    if isinstance(classes, str):
        return gt.categories.subset(classes)
    return gt.categories.select(classes)


def counted(
    gt: GroundTruth, ranking: Ranking, selected: NDArray[np.int64], exact_lvis: bool
) -> NDArray[np.bool_] | None:
    """[N] detections that budgets count; None for all."""
    members = counted_classes(gt, ranking, selected, exact_lvis)
    return None if members is None else members[ranking.category]


def counted_classes(
    gt: GroundTruth, ranking: Ranking, selected: NDArray[np.int64], exact_lvis: bool
) -> NDArray[np.bool_] | None:
    """[category ids of the ranking] classes whose detections budgets count; None for all."""
    if exact_lvis and len(selected) == len(gt.categories):
        return None
    rows = category_rows(gt, ranking)
    members = np.isin(rows, selected)
    if exact_lvis:
        members |= rows < 0
    return None if members.all() else members
