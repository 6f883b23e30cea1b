"""How far AP depends on the order of equal scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.evaluation.average_precision import RECALLS
from lvdet.evaluation.pooled import Pools
from lvdet.tables.matches import Matches
from lvdet.tables.outcomes import Outcomes
from lvdet.threads import thread_count

#: A range wider than this (0.05 points) is worth a warning.
NOTABLE = 0.0005


@dataclass(frozen=True)
class TieRange:
    """The lowest and the highest AP over all orders of equal scores; NaN where undefined."""

    low: float
    high: float

    @property
    def notable(self) -> bool:
        """Whether the order matters."""
        return self.high - self.low > NOTABLE


def mean_range(bounds: tuple[NDArray[np.float64], NDArray[np.float64]]) -> TieRange:
    """The means over those rankings that have objects to find."""
    low, high = (one[~np.isnan(one)] for one in bounds)
    return TieRange(*(float(one.mean()) if one.size else float("nan") for one in (low, high)))


class Ties:
    """The bounds of some rankings over all orders of equal scores.

    At each IoU threshold the worst order has the right rows of a score last, the best has them
    first. Rows whose match may itself depend on the order are wrong in the worst case, and right
    in the best at every threshold at which they could match anything.
    """

    def __init__(
        self,
        low: Outcomes,
        high: Outcomes,
        offsets: NDArray[np.int64],
        matches: Matches,
        score: NDArray[np.float64],
        order: NDArray[np.int32] | None = None,
    ) -> None:
        self._low, self._high, self._offsets = low, high, offsets
        self._scores = (order, matches.detection, score)
        self._low_tied = self._tied(low)
        self._high_tied = self._low_tied if high is low else self._tied(high)

    @property
    def any(self) -> bool:
        """Whether there are ties of rows that match something."""
        return bool(self._low_tied.any())

    def bounds(
        self,
        keep: NDArray[np.bool_] | None,
        truth: NDArray[np.int64],
        precision: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """[R, T] the lowest and the highest precision of each ranking, given what it is in the
        order of the file (`precision`), over the rows that `keep` leaves; truth: [R]."""
        lowest, highest = _native.accumulate_ties(
            self._low.columns,
            self._low_tied,
            self._high.columns,
            self._high_tied,
            self._offsets,
            None if keep is None else keep.view(np.uint8),
            self._scores,
            np.ascontiguousarray(truth),
            RECALLS,
            np.ascontiguousarray(precision),
            thread_count(),
        )
        return lowest, highest

    def _tied(self, outcomes: Outcomes) -> NDArray[np.uint8]:
        return _native.find_ties(outcomes.columns, self._offsets, self._scores, thread_count())


def ties_of_classes(matches: Matches, score: NDArray[np.float64]) -> Ties:
    """Those of each class; score: [N], over the ranking."""
    low, high = _bounds(matches)
    return Ties(low, high, matches.category_offsets, matches, score)


def ties_of_pool(
    matches: Matches, score: NDArray[np.float64], pools: Pools, classes: NDArray[np.int64]
) -> Ties:
    """Those of all classes (rows) in one ranking; `pools` have the same one first."""
    low, high = _bounds(matches)
    if low is high:
        low = high = pools.outcomes
    else:
        low, high = (
            Pools(replace(matches, outcomes=bound), [classes]).outcomes for bound in (low, high)
        )
    offsets = np.array([0, len(matches)])
    return Ties(low, high, offsets, matches, score, matches.together)


def tied_rows(
    matches: Matches, score: NDArray[np.float64], keep: NDArray[np.bool_] | None, *, pooled: bool
) -> int:
    """How many of the rows that are kept share their score with another of their ranking."""
    order = matches.together if pooled else np.arange(len(matches), dtype=np.int32)
    if keep is not None:
        order = order[keep[order]]
    values = score[matches.detection[order]]
    same = values[1:] == values[:-1]
    if not pooled:
        category = matches.category[order]
        same &= category[1:] == category[:-1]
    return int((np.append(same, False) | np.append(False, same)).sum())


def tie_warning(source: str, moved: Sequence[tuple[str, TieRange, int]]) -> str:
    """That the order of equal scores moves these numbers, of so many tied rows, in a sentence."""
    texts = [
        f"{name} lies between {100 * one.low:.2f} and {100 * one.high:.2f} ({tied:,} detections "
        "share their score with another)"
        for name, one, tied in moved
    ]
    return (
        f"{source} has equal scores, and no order among them is right: depending on it, "
        f"{'; '.join(texts)}. Write scores with all their digits."
    )


def _bounds(matches: Matches) -> tuple[Outcomes, Outcomes]:
    """The outcomes at worst and at best; the same object where no match depends on the order."""
    outcomes = matches.outcomes
    assert matches.contested is not None  # the scores are those of the matching
    rows, reached = matches.contested
    if not len(rows):
        return outcomes, outcomes
    order = np.argsort(rows)
    rows, reached = rows[order], reached[order]
    is_hit = np.isin(rows, outcomes.hits)
    bits = np.zeros((len(rows), 2, outcomes.bits.shape[3]), dtype=np.uint8)
    bits[is_hit] = outcomes.bits[np.searchsorted(outcomes.hits, rows[is_hit]), 0]
    bits[~is_hit & (outcomes.wrong[rows] & 1 == 0), 1] = 0xFF
    left = bits & ~reached[:, None]
    low = outcomes.replaced(rows[is_hit], left[is_hit])
    left[:, 0] |= reached
    return low, outcomes.replaced(rows, left)
