"""AP and AP-Pool under any budgets, over any classes, from one match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.average_precision import accumulate
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.pooled import Pools, ranked_together
from lvdet.evaluation.summary import AP, group_metrics, summarize
from lvdet.limits.budgets import Budget
from lvdet.limits.ranks import Ranks
from lvdet.tables.matches import Matches

_METRICS = (AP[0], *group_metrics(()))
#: The metrics by name: AP, APr, APc, APf.
NAMES = tuple(metric.name for metric in _METRICS)

#: Budgets, and the classes they are for.
_Question: TypeAlias = tuple[tuple[Budget, ...], bytes]


class Scores:
    """What the detections score, asked for as often as one likes.

    Nothing is worked out twice: rows are ranked once for each kind of budget, pooled rankings are
    made once for each set of classes, and equal questions have one answer. `matches` are those of
    the pair, where they are there already.
    """

    def __init__(
        self,
        pair: Pair,
        *,
        matches: Matches | None = None,
    ) -> None:
        self._pair = pair
        if matches is None:
            matches = _any_area(pair.matched())
        self.matches = matches
        self.ranks = Ranks(pair.results.ranking, self.matches.detection)
        self._groups = pair.gt.categories.groups()
        self._order: NDArray[np.int32] | None = None
        self._pools: dict[bytes, Pools] = {}
        self._last: tuple[_Question, NDArray[np.bool_] | None] | None = None
        self._found: dict[tuple[bool, bytes, bytes], dict[str, float]] = {}

    def average(self, budgets: Sequence[Budget], classes: NDArray[np.int64]) -> dict[str, float]:
        """The mean over classes (rows): AP, APr, APc, APf; NaN where undefined."""
        return self._answer(False, budgets, classes)

    def pooled(self, budgets: Sequence[Budget], classes: NDArray[np.int64]) -> dict[str, float]:
        """The same of AP-Pool."""
        return self._answer(True, budgets, classes)

    def instances(self, classes: NDArray[np.int64]) -> int:
        """How many objects of the classes there are to be found."""
        return int(self.matches.truth[classes].sum())

    def kept(
        self, budgets: Sequence[Budget], classes: NDArray[np.int64]
    ) -> NDArray[np.bool_] | None:
        """[K] which rows of the matches the budgets leave; None for all."""
        question = (tuple(budgets), classes.tobytes())
        if self._last is None or self._last[0] != question:
            counted = self._pair.counted_classes(classes)
            # The same is asked for twice in a row, for AP and AP-Pool, and never later.
            self._last = question, self.ranks.kept(budgets, classes=counted)
        return self._last[1]

    def _answer(
        self, pooled: bool, budgets: Sequence[Budget], classes: NDArray[np.int64]
    ) -> dict[str, float]:
        keep = self.kept(budgets, classes)
        # Equal rows have an equal answer, whatever the budgets: many limits keep everything.
        rows = b"" if keep is None else blake2b(np.packbits(keep).tobytes()).digest()
        key = (pooled, rows, classes.tobytes())
        if key not in self._found:
            self._found[key] = self._pool(keep, classes) if pooled else self._mean(keep, classes)
        return dict(self._found[key])

    def _mean(self, keep: NDArray[np.bool_] | None, classes: NDArray[np.int64]) -> dict[str, float]:
        truth = np.zeros_like(self.matches.truth)
        truth[classes] = self.matches.truth[classes]  # others have nothing to find: undefined
        curves, _ = accumulate(self.matches, truth, self.matches.category_offsets, keep=keep)
        return summarize(_METRICS, curves, matches=self.matches, groups=self._groups)

    def _pool(self, keep: NDArray[np.bool_] | None, classes: NDArray[np.int64]) -> dict[str, float]:
        key = classes.tobytes()
        if key not in self._pools:
            score = self._pair.results.ranking.score
            if self._order is None:
                self._order = ranked_together(self.matches, score)
            groups = [np.intersect1d(rows, classes) for rows in self._groups.values()]
            self._pools[key] = Pools(self.matches, score, [classes, *groups], order=self._order)
        curves = self._pools[key].curves(keep)
        whole, *parts = curves.precision[:, 0].mean(axis=1).tolist()
        of_group = dict(zip(self._groups, parts, strict=True))
        return {
            metric.name: whole if metric.group is None else of_group.get(metric.group, float("nan"))
            for metric in _METRICS
        }


def _any_area(matches: Matches) -> Matches:
    """The matches over all areas alone: a quarter of the memory to walk over."""
    return replace(
        matches,
        outcomes=np.ascontiguousarray(matches.outcomes[:, :1]),
        truth=np.ascontiguousarray(matches.truth[:, :1]),
        areas=matches.areas[:1],
    )
