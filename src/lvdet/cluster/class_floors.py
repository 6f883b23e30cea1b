"""Scores below which no detection is among the best of its class, learned from finished shards.

Results never depend on them: they only save memory and work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.limits.budgets import PerClass
from lvdet.limits.needs import Need
from lvdet.tables.results import Ranking
from lvdet.threads import thread_count

#: Numbers that are kept of all classes, and of one class at most.
_NUMBERS, _STEPS = 1 << 19, 64


@dataclass(frozen=True, eq=False)
class ClassFloors:
    """What is known of the best scores of each class.

    counts: [K] rising to the highest limit
    scores: [C, K] falling: at least `counts[k]` rows of a class have this score or a higher one;
        minus infinity where that is not known
    """

    counts: NDArray[np.int64]
    scores: NDArray[np.float64]

    @staticmethod
    def unknown(needs: Sequence[Need], classes: int) -> ClassFloors | None:
        """Nothing is known yet; None where no budget counts by class."""
        limits = [need.budget.limit for need in needs if isinstance(need.budget, PerClass)]
        limit = max(limits, default=0)
        if not limit:
            return None
        steps = min(max(_NUMBERS // max(classes, 1), 1), _STEPS, limit)
        counts = -(-limit * np.arange(1, steps + 1) // steps)
        return ClassFloors(counts, np.full((classes, steps), -np.inf))

    @property
    def floor(self) -> NDArray[np.float64]:
        """[C] the scores; rows that have one exactly may still count, if they come earlier."""
        return self.scores[:, -1]

    def of(self, ranking: Ranking) -> ClassFloors:
        """What these rows alone tell, by the same counts. Their first classes are those known."""
        order, offsets = _native.rank_groups(
            ranking.category, len(ranking.category_ids), ranking.score, thread_count()
        )
        classes = len(self.scores)
        begin, end = offsets[:classes], offsets[1 : classes + 1]
        place = begin[:, None] + self.counts - 1
        inside = place < end[:, None]
        scores = np.full(self.scores.shape, -np.inf)
        scores[inside] = ranking.score[order[place[inside]]]
        return ClassFloors(self.counts, scores)

    def raised(self, other: ClassFloors) -> ClassFloors:
        """What both tell together, of different rows."""
        steps = np.diff(self.counts, prepend=0)
        scores = np.concatenate([self.scores, other.scores], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")
        scores = np.take_along_axis(scores, order, axis=1)
        above = np.cumsum(np.tile(steps, 2)[order], axis=1)
        first = (above[:, None, :] < self.counts[:, None]).sum(axis=2)
        return ClassFloors(self.counts, np.take_along_axis(scores, first, axis=1))
