"""Detections with their localisation quality, for errors that take it into account."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.maps import Floats
from lvdet.errors import InputError
from lvdet.evaluation.pair import Pair

#: An IoU threshold of 0 means any overlap: the lowest that is above 0.
_ANY_OVERLAP = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Located:
    """The detections that count, by class and descending score.

    score:    [N] float64
    right:    [N] bool, whether matched with an object
    overlap:  [N] float64, IoU with that object; 0 for the others
    category: [N] int32, rows of the annotations' categories
    objects:  [C] int64, objects to find
    """

    score: Floats
    right: NDArray[np.bool_]
    overlap: Floats
    category: NDArray[np.int32]
    objects: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.score)

    def class_rows(self) -> list[slice]:
        """[C] the rows of each class."""
        rows = np.arange(len(self.objects) + 1, dtype=self.category.dtype)
        ends = np.searchsorted(self.category, rows)
        return [slice(first, end) for first, end in pairwise(ends.tolist())]


def level(threshold: float) -> float:
    """The threshold as matching takes it: 0 means any overlap."""
    return max(float(threshold), _ANY_OVERLAP)


def require_level(threshold: object) -> None:
    """Raises for an IoU threshold that a match cannot exceed."""
    if (
        isinstance(threshold, bool)
        or not isinstance(threshold, Real)
        or not 0 <= float(threshold) < 1
    ):
        raise InputError(
            f"IoU threshold is {threshold!r}, expected a number from 0 (any overlap) to below 1"
        )


def located(pair: Pair, threshold: float, keep: NDArray[np.bool_] | None) -> Located:
    """The detections of the pair selected by a mask over its ranking ([N], None for all), matched
    at an IoU threshold. Detections that AP ignores are left out."""
    matches, place = pair.matched_at(level(threshold), partners=True)
    assert matches.overlap is not None
    matched, ignored = matches.flags(place)
    counted = ~ignored
    rows = matches.kept(keep)
    if rows is not None:
        counted &= rows
    return Located(
        pair.results.ranking.score[matches.detection[counted]],
        matched[counted],
        matches.overlap[counted],
        matches.category[counted],
        matches.truth[:, 0],
    )
