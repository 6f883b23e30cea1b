"""Ranks: budgets of any size from one ordering.

`budgets.apply` searches each group again for every limit, which is cheapest for a single limit on
large groups. Otherwise all rows are ranked once: a single budget is then a comparison of ranks, and
a budget after others needs one pass over the rows they left, whatever its limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.limits.budgets import Budget, PerClass, PerImage, apply
from lvdet.tables.columns import take
from lvdet.tables.results import Ranking
from lvdet.threads import thread_count

#: Rows of each group by descending score, and where each group begins.
Ordering: TypeAlias = tuple[
    np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.int64]]
]
#: The budgets and classes that came before, the kind of budget that ranks what they left, and
#: whether the rows are in another order.
_Key: TypeAlias = tuple[tuple[Budget, ...], bytes | None, type[Budget], bool]

#: The rank of a row that is not there any more.
NOT_KEPT = 2**31 - 1
#: Bytes of ranks that are kept for the next limit; the oldest go first.
_REMEMBERED = 1 << 26


class Ranks:
    """The ranks of some rows of a ranking, under any budgets.

    ranking: all detections that budgets count
    rows:    [K] int32, those that one wants to know of
    """

    def __init__(self, ranking: Ranking, rows: NDArray[np.int32]) -> None:
        self._ranking = ranking
        self._rows = rows
        self._asked: set[type[Budget] | None] = set()
        self._orders: dict[type[Budget], _Order] = {}
        self._known: dict[_Key, NDArray[np.int32]] = {}

    def has(self, budgets: Sequence[Budget]) -> bool:
        """Whether the rows are already ranked for the last of the budgets, so that masks are
        cheap."""
        return bool(budgets) and type(budgets[-1]) in self._orders

    def kept(
        self,
        budgets: Sequence[Budget],
        *,
        classes: NDArray[np.bool_] | None = None,
        order: NDArray[np.int32] | None = None,
    ) -> NDArray[np.bool_] | None:
        """[K] which of the rows the budgets leave, in turn; None if all.

        classes: [category ids] those whose detections are there at all, before any budget; None
        for all of them. order: [K] the rows in another order, whenever it is given the same one.
        """
        first = None if len(budgets) != 1 else type(budgets[0])
        if order is None and first in (PerImage, PerClass) and first not in self._asked:
            self._asked.add(first)
            keep = apply(budgets, self._ranking, among=self._of(classes))
            flags = None if keep is None else take(keep, self._rows)
            return None if flags is None or flags.all() else flags
        if budgets:
            *before, last = budgets
            ranks = self._before(tuple(before), classes, last, order)
            kept = ranks < min(last.limit, NOT_KEPT)
        elif classes is None:
            return None
        else:
            rows = self._rows if order is None else take(self._rows, order)
            kept = take(classes, take(self._ranking.category, rows))
        return None if kept.all() else kept

    def _of(self, classes: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """[N] whether a row belongs to the classes; None for all."""
        return None if classes is None else take(classes, self._ranking.category)

    def _before(
        self,
        budgets: tuple[Budget, ...],
        classes: NDArray[np.bool_] | None,
        last: Budget,
        in_order: NDArray[np.int32] | None = None,
    ) -> NDArray[np.int32]:
        """[K] for each row, how many rows of its group rank before it, among those that the budgets
        keep."""
        named = None if classes is None else classes.tobytes()
        key = (budgets, named, type(last), in_order is not None)
        found = self._known.pop(key, None)
        if found is None and in_order is not None:
            found = take(self._before(budgets, classes, last), in_order)
        elif found is None:
            order = self._order(last)
            found = _native.count_before(
                order.ordering,
                self._left(budgets, classes),
                order.place,
                order.group,
                thread_count(),
            )
        self._known[key] = found  # at the end again
        while len(self._known) > 2 and len(self._known) * found.nbytes > _REMEMBERED:
            del self._known[next(iter(self._known))]
        return found

    def _left(
        self, budgets: tuple[Budget, ...], classes: NDArray[np.bool_] | None
    ) -> NDArray[np.uint8] | None:
        """[N] what the budgets keep of the classes; None for everything."""
        rows = self._of(classes)
        keep = None if rows is None else rows.view(np.uint8)
        for budget in budgets:
            ordering = self._order(budget).ordering
            keep = _native.keep_first(ordering, keep, budget.limit, thread_count())
        return keep

    def _order(self, budget: Budget) -> _Order:
        kind = type(budget)
        if kind not in self._orders:
            self._orders[kind] = _Order(budget, self._ranking, self._rows)
        return self._orders[kind]


class _Order:
    """All rows by the groups of a kind of budget, and where the requested rows are in it.

    place: [K] int32; group: [K] int32
    """

    def __init__(self, budget: Budget, ranking: Ranking, rows: NDArray[np.int32]) -> None:
        group, groups = budget.groups(ranking)
        self.ordering: Ordering = _native.rank_groups(group, groups, ranking.score, thread_count())
        self.place = _native.find_places(self.ordering, rows, thread_count())
        self.group = take(group, rows)
