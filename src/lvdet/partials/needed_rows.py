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

    floor: [category ids] below this score, no row is among the best of its class; budgets per
        class then keep all other rows
    """
    if any(budget is None and members is None for budget, members in requests):
        return None
    keep = whole[ranking.image]
    for budget, members in requests:
        among = None if members is None else members[ranking.category]
        kept = among
        if floor is not None and isinstance(budget, PerClass) and budget.limit:
            above = ranking.score >= floor[ranking.category]
            kept = above if among is None else above & among
        elif budget is not None:
            kept = apply([budget], ranking, among=among)
        keep |= True if kept is None else kept
    return None if keep.all() else keep
