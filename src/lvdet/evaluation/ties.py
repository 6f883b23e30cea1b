"""How far AP depends on the order of equal scores.

At each IoU threshold, the worst order puts the correct rows of a score last, and the best order
puts them first. `average_precision.Ties` computes both beside the order of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.average_precision import Curves
from lvdet.tables.matches import Matches

#: A range wider than this (0.05 points) is worth a warning.
NOTABLE = 0.0005


@dataclass(frozen=True)
class TieRange:
    """The lowest and highest AP over all orders of equal scores; NaN where undefined."""

    low: float
    high: float

    @property
    def notable(self) -> bool:
        """Whether the order makes a difference."""
        return self.high - self.low > NOTABLE


def mean_range(low: Curves, high: Curves | None = None) -> TieRange:
    """The mean of the bounds over the rankings that have objects to find, from one set of curves or
    from the curves of the worst and of the best order."""
    bounds = low.lowest, (low if high is None else high).highest
    known = (one[~np.isnan(one)] for one in bounds)
    return TieRange(*(float(one.mean()) if one.size else float("nan") for one in known))


def tied_rows(
    matches: Matches, score: NDArray[np.float64], keep: NDArray[np.bool_] | None, *, pooled: bool
) -> int:
    """The number of kept rows that share their score with another row of their ranking."""
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
    """A warning that the order of equal scores affects these numbers."""
    texts = [
        f"{name} lies between {100 * one.low:.2f} and {100 * one.high:.2f} ({tied:,} detections "
        "share their score with another)"
        for name, one, tied in moved
    ]
    return (
        f"{source} has equal scores, whose order is arbitrary: depending on it, "
        f"{'; '.join(texts)}. Write scores at full precision."
    )


def bounding_matches(matches: Matches) -> tuple[Matches, Matches] | None:
    """The worst and the best match, over all areas only, if the match itself depends on the order
    of equal scores in an image; None if it does not.

    Rows that another order might match differently are incorrect in the worst match, and correct in
    the best wherever they could match anything. These are bounds, which no order need attain.
    """
    outcomes = matches.outcomes
    assert matches.contested is not None  # the matching saw these scores
    rows, reached = matches.contested
    if not len(rows):
        return None
    order = np.argsort(rows)
    rows, reached = rows[order], reached[order]
    is_hit = np.isin(rows, outcomes.hits)
    bits = np.zeros((len(rows), 2, outcomes.bits.shape[3]), dtype=np.uint8)
    bits[is_hit] = outcomes.bits[np.searchsorted(outcomes.hits, rows[is_hit]), 0]
    bits[~is_hit & (outcomes.wrong[rows] & 1 == 0), 1] = 0xFF
    left = bits & ~reached[:, None]
    low = outcomes.replaced(rows[is_hit], left[is_hit])
    left[:, 0] |= reached
    high = outcomes.replaced(rows, left)
    return replace(matches, outcomes=low), replace(matches, outcomes=high)
