"""Selects classes, and the detections that budgets then count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows
from lvdet.tables.results import Ranking, Results


def select(
    gt: GroundTruth,
    classes: str | Iterable[int | str] | None,
    groups: Mapping[str, NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Rows of the selected classes: all, a group, letters of "rcf", names or ids."""
    if classes is None:
        return np.arange(len(gt.categories))
    if isinstance(classes, str) and classes in groups:
        return groups[classes]
    if isinstance(classes, str):
        return gt.categories.subset(classes)
    return gt.categories.select(classes)


def restricted(
    groups: Mapping[str, NDArray[np.int64]], selected: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """The groups restricted to some classes."""
    return {name: rows[np.isin(rows, selected)] for name, rows in groups.items()}


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


def require_known_class(gt: GroundTruth, results: Results) -> None:
    """Raises for results without any class of the annotations."""
    unknown = unknown_classes(gt, results)
    if unknown.any() and results.per_class[unknown].sum() == results.total:
        ids = first_ids(results.ranking.category_ids[unknown])
        raise InputError(f"{results.source}: none of its category ids ({ids}) are in {gt.source}")


def unknown_classes(gt: GroundTruth, results: Results) -> NDArray[np.bool_]:
    """[category ids of the ranking] whether each has detections but is not in the annotations."""
    return (category_rows(gt, results.ranking) < 0) & (results.per_class > 0)


def first_ids(ids: NDArray[np.int64]) -> str:
    """The first five, with an ellipsis if there are more."""
    return ", ".join(map(str, np.sort(ids)[:5].tolist())) + (", …" if len(ids) > 5 else "")
