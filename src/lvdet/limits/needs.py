"""The part of a results file that budgets can keep, so that the rest need not be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.files.collect import Cap
from lvdet.limits.budgets import Budget, PerClass, PerImage, PerImageClass
from lvdet.tables.ground_truth import GroundTruth

#: Groups of which it is known what a row has to exceed, at 32 bytes each. Where there are more
#: (COCO's limit per image and class, with many of both), all rows are kept.
_MOST_GROUPS = 1 << 23


@dataclass(frozen=True, eq=False)
class Need:
    """The detections that a budget keeps of some classes (rows of the annotations' categories); all
    of them if the budget is None. `boxes` says that boxes and masks are needed in every cell, not
    only where detections count."""

    budget: Budget | None
    classes: NDArray[np.int64]
    boxes: bool = False


def everything(gt: GroundTruth) -> list[Need]:
    """All detections of all classes: for limits of any size, and for bootstrap samples."""
    return [Need(None, np.arange(len(gt.categories)))]


def caps_of(needs: Sequence[Need], gt: GroundTruth, *, unknown: bool) -> list[Cap]:
    """Caps that keep every needed detection; no caps if all are needed.

    A budget that is applied first to some classes leaves the best of each image or class. The
    best of several parts of an image are among the best of each part, so images are divided
    into as many parts as the needs tell apart. `unknown` says that detections of classes that
    the annotations do not have count too, as lvis counts them.
    """
    if any(need.budget is None for need in needs):
        return []
    caps = []
    for kind in (PerClass, PerImage, PerImageClass):
        alike = [need for need in needs if isinstance(need.budget, kind)]
        if not alike:
            continue
        part, parts = _parts(alike, len(gt.categories))
        others = -1
        if kind is PerImage and unknown:
            parts, others = parts + 1, parts
        elif kind is PerClass and unknown:
            others = 0  # what a class limit leaves of them may use up an image's later
        if kind is not PerImage:
            part = np.where(part < 0, -1, np.arange(len(part))).astype(np.int32)
            parts = len(part)
        if kind is not PerClass and parts * len(gt.images) > _MOST_GROUPS:
            return []
        limit = max(need.budget.limit for need in alike if need.budget is not None)
        caps.append(Cap(kind is not PerClass, limit, part, max(parts, 1), others))
    return caps


def _parts(needs: Sequence[Need], classes: int) -> tuple[NDArray[np.int32], int]:
    """[C] equal numbers for classes in the same needs, -1 for classes in none; and how many numbers
    there are."""
    member = np.zeros((classes, len(needs)), dtype=bool)
    for column, need in enumerate(needs):
        member[need.classes, column] = True
    needed = member.any(axis=1)
    numbers: dict[bytes, int] = {}
    part = np.full(classes, -1, dtype=np.int32)
    part[needed] = [numbers.setdefault(row.tobytes(), len(numbers)) for row in member[needed]]
    return part, len(numbers)
