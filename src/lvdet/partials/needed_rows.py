"""Which rows of a part are needed, when budgets apply to the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.limits.budgets import Budget, PerClass, PerImage, apply
from lvdet.tables.results import Ranking

#: A budget that is applied first, None for all rows, and the classes whose detections it counts
#: ([category ids of the ranking]), None for all.
Request: TypeAlias = tuple[Budget | None, NDArray[np.bool_] | None]


def requests_of(
    budgets: Sequence[Budget | None], members: NDArray[np.bool_] | None
) -> list[Request]:
    """Requests of the same classes. The best of each image, whatever their class, show whether a
    file was truncated."""
    found = [(budget, members) for budget in budgets]
    if members is not None:
        found += [(budget, None) for budget in budgets if isinstance(budget, PerImage)]
    return found


def needed_rows(
    ranking: Ranking,
    requests: Sequence[Request],
    whole: NDArray[np.bool_],
    *,
    floor: NDArray[np.float64] | None = None,
) -> NDArray[np.bool_] | None:
    """[N] the rows that a request can use, and all rows of some images ([image ids]); None for all
    rows. Among equal scores, budgets keep the earlier row.

    floor: [category ids] below this score, no row of a class is among the best of its class
    """
    if any(budget is None and members is None for budget, members in requests):
        return None
    keep = whole[ranking.image]
    above = None if floor is None else ranking.score >= floor[ranking.category]
    for budget, members in requests:
        among = None if members is None else members[ranking.category]
        if above is not None and isinstance(budget, PerClass):
            among = above if among is None else among & above
        kept = among if budget is None else apply([budget], ranking, among=among)
        keep |= True if kept is None else kept
    return None if keep.all() else keep
