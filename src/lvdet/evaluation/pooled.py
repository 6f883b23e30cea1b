"""AP-Pool: matching within each class, then one ranking over all classes (the paper, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.evaluation.average_precision import Curves, Ties, accumulate
from lvdet.tables.matches import Matches
from lvdet.tables.outcomes import Outcomes
from lvdet.threads import thread_count


class Pools:
    """Pools of classes (rows), each with its detections in one ranking: by descending score over
    all its classes, equal scores by image, then class, then rank in that class and image."""

    def __init__(self, matches: Matches, pools: Sequence[NDArray[np.int64]]) -> None:
        self._matches, self._pools = matches, pools
        member = np.zeros((len(pools), len(matches.truth)), dtype=np.uint8)
        for number, pool in enumerate(pools):
            member[number, pool] = 1
        # The outcomes in a single ranking. Its scopes are the pools, MOST_POOLS at a time.
        self._outcomes = [
            _pooled(matches, member[first : first + _native.MOST_POOLS])
            for first in range(0, len(pools), _native.MOST_POOLS)
        ]

    def curves(
        self,
        keep: NDArray[np.bool_] | None = None,
        truth: NDArray[np.int64] | None = None,
        ties: Ties | None = None,
    ) -> Curves:
        """A curve for each pool over all areas, [pools, 1, T]; `keep` ([K]) is over the rows in
        the one ranking, `truth` ([C, …]) the objects to be found where not all of them. With the
        `ties` of the first pool, its bounds too."""
        parts = [curves for curves, _ in self._accumulate(keep, truth, ties=ties)]
        return Curves(
            np.concatenate([part.precision for part in parts], axis=1).swapaxes(0, 1),
            np.concatenate([part.recall for part in parts], axis=1).swapaxes(0, 1),
            parts[0].lowest,
            parts[0].highest,
        )

    def ties(self, score: NDArray[np.float64]) -> Ties:
        """The ties of the first pool; score: [N], over the ranking."""
        matches = self._matches
        offsets = np.array([0, len(matches)])
        return Ties.of(self._outcomes[0], offsets, matches.together, matches.detection, score)

    def points(self, keep: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """[pools, T, 101] the precision at each recall, for plots."""
        parts = [points[0] for _, points in self._accumulate(keep, points=True)]
        return np.concatenate(parts)

    def _accumulate(
        self,
        keep: NDArray[np.bool_] | None,
        truth: NDArray[np.int64] | None = None,
        *,
        ties: Ties | None = None,
        points: bool = False,
    ) -> list[tuple[Curves, NDArray[np.float64]]]:
        matches = self._matches
        of_class = (matches.truth if truth is None else truth)[:, 0]
        objects = [of_class[pool].sum() for pool in self._pools]
        found: list[tuple[Curves, NDArray[np.float64]]] = []
        offsets = np.array([0, len(matches)])
        for outcomes in self._outcomes:
            scopes = outcomes.bits.shape[1]
            here, objects = np.array([objects[:scopes]], dtype=np.int64), objects[scopes:]
            thresholds = len(matches.thresholds)
            first = None if found else ties
            found.append(
                accumulate(
                    outcomes, thresholds, here, offsets, keep=keep, ties=first, points=points
                )
            )
        return found


def _pooled(matches: Matches, member: NDArray[np.uint8]) -> Outcomes:
    """The outcomes over all areas in the single ranking, one scope per pool ([pools, C])."""
    return Outcomes(
        *_native.pool_outcomes(
            matches.outcomes.columns,
            matches.together,
            matches.category_offsets,
            member,
            thread_count(),
        )
    )
