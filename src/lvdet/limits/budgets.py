"""Budgets: how many detections are kept.

A budget is a value; `apply` turns a list of budgets, in the given order, into a mask over the
detections. All rank by descending score, ties by row, and count every detection, before the
federated filter.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.tables.detections import Detections
from lvdet.tables.results import Ranking, Results
from lvdet.tables.values import require_limit
from lvdet.threads import thread_count


@dataclass(frozen=True)
class Budget(ABC):
    """A limit on the number of detections in each group."""

    limit: int
    #: What the limit is for, as it is written beside numbers.
    unit: ClassVar[str]

    def __post_init__(self) -> None:
        require_limit(self.limit)

    def __str__(self) -> str:
        return f"{self.limit}/{self.unit}"

    @abstractmethod
    def groups(self, detections: Ranking | Detections) -> tuple[NDArray[np.int32], int]:
        """The group of each detection, and the number of groups."""

    @abstractmethod
    def most(self, results: Results) -> int:
        """An upper bound on the detections of the largest group."""


class PerImage(Budget):
    """The best `limit` detections of an image across all classes, as lvis counts (300)."""

    unit = "image"

    def groups(self, detections: Ranking | Detections) -> tuple[NDArray[np.int32], int]:
        return detections.image, len(detections.image_ids)

    def most(self, results: Results) -> int:
        return int(results.per_image.max(initial=0))


class PerClass(Budget):
    """The best `limit` detections of a class across all images, as AP-Fixed counts (10,000)."""

    unit = "class"

    def groups(self, detections: Ranking | Detections) -> tuple[NDArray[np.int32], int]:
        return detections.category, len(detections.category_ids)

    def most(self, results: Results) -> int:
        return int(results.per_class.max(initial=0))


class PerImageClass(Budget):
    """The best `limit` detections of each class in each image, as pycocotools counts (100)."""

    unit = "image/class"

    def groups(self, detections: Ranking | Detections) -> tuple[NDArray[np.int32], int]:
        number, count = _native.number_pairs(
            detections.image,
            len(detections.image_ids),
            detections.category,
            len(detections.category_ids),
        )
        return number, count

    def most(self, results: Results) -> int:
        return int(min(results.per_image.max(initial=0), results.per_class.max(initial=0)))


_KINDS: dict[str, type[Budget]] = {kind.unit: kind for kind in (PerImage, PerClass, PerImageClass)}
_STEP = re.compile(r"([0-9]{1,18})/(image/class|image|class)")


def describe(budgets: Sequence[Budget]) -> str:
    """The budgets as written beside every number: 1000/image,10000/class."""
    return ",".join(str(budget) for budget in budgets) or "no limit"


def parse_budget(text: str) -> tuple[Budget, ...]:
    """Parses budgets written as by `describe`."""
    steps = [_STEP.fullmatch(step.strip()) for step in text.split(",")]
    found = [step for step in steps if step is not None]
    if len(found) < len(steps):
        raise InputError(
            f"budget is {text!r}, expected limits joined by commas, without thousands separators: "
            "1000/image, 10000/class or 300/image/class"
        )
    return tuple(_KINDS[step[2]](int(step[1])) for step in found)


def apply(
    budgets: Sequence[Budget],
    detections: Ranking | Detections,
    *,
    among: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_] | None:
    """[N] the detections that the budgets keep, applied in order; None if they keep everything.
    `among` drops rows before the first budget applies.
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
