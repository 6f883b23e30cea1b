"""Budgets: how many detections are looked at.

A budget is a value; `apply` turns a list of them, in the order given, into a mask over the
detections. All rank by falling score, earlier rows first among equals, and count every
detection, before the federated filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.tables.detections import Detections
from lvdet.tables.results import Ranking
from lvdet.tables.values import require_limit
from lvdet.threads import thread_count


class Budget(Protocol):
    """A limit on the number of detections of each group of them."""

    @property
    def limit(self) -> int:
        """How many of each group are kept."""

    def groups(self, detections: Ranking | Detections) -> tuple[NDArray[np.int32], int]:
        """The group of each detection, and the number of groups."""


@dataclass(frozen=True)
class PerImage:
    """The best `limit` of an image over all classes, as lvis counts (300)."""

    limit: int

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def __str__(self) -> str:
        return f"{self.limit:,}/image"

    def groups(self, detections: Ranking | Detections) -> tuple[NDArray[np.int32], int]:
        return detections.image, len(detections.image_ids)


@dataclass(frozen=True)
class PerClass:
    """The best `limit` of a class over all images, as AP-Fixed counts (10,000)."""

    limit: int

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def __str__(self) -> str:
        return f"{self.limit:,}/class"

    def groups(self, detections: Ranking | Detections) -> tuple[NDArray[np.int32], int]:
        return detections.category, len(detections.category_ids)


@dataclass(frozen=True)
class PerImageClass:
    """The best `limit` of each class in each image, as pycocotools counts (100)."""

    limit: int

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def __str__(self) -> str:
        return f"{self.limit:,}/image/class"

    def groups(self, detections: Ranking | Detections) -> tuple[NDArray[np.int32], int]:
        number, count = _native.number_pairs(
            detections.image,
            len(detections.image_ids),
            detections.category,
            len(detections.category_ids),
        )
        return number, count


def describe(budgets: Sequence[Budget]) -> str:
    """The budgets in words, as written beside every number."""
    return " then ".join(str(budget) for budget in budgets) or "no limit"


def apply(
    budgets: Sequence[Budget],
    detections: Ranking | Detections,
    *,
    among: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_] | None:
    """[N] which detections the budgets leave, one after the other; None where that is all.

    `among` leaves out rows before the first budget counts.
    """
    keep = None if among is None or among.all() else among.astype(np.uint8)
    for budget in budgets:
        if keep is None:
            keep = np.ones(len(detections), dtype=np.uint8)
        groups, count = budget.groups(detections)
        _native.keep_top(groups, count, detections.score, budget.limit, keep, thread_count())
    if keep is None:
        return None
    kept = keep.view(np.bool_)
    return None if kept.all() else kept
