"""AP-Pool: matching inside each class, one ranking over all classes (the paper, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.evaluation.average_precision import Curves, accumulate
from lvdet.tables.matches import Matches


class Pools:
    """Pools of classes, each with its detections in one ranking: by falling score over all its
    classes, equal scores by image, then class, then rank in that class and image.

    order: [K] the rows of the matches as `ranked_together` has them
    pools: rows of classes
    """

    def __init__(
        self,
        matches: Matches,
        order: NDArray[np.int32],
        pools: Sequence[NDArray[np.int64]],
    ) -> None:
        self._matches, self._pools = matches, pools
        category = matches.category[order]
        rankings = []
        for pool in pools:
            member = np.zeros(len(matches.truth), dtype=bool)
            member[pool] = True
            rankings.append(order if member.all() else order[member[category]])
        self._order = np.concatenate(rankings)
        self._offsets = np.cumsum([0, *map(len, rankings)]).astype(np.int64)

    def curves(
        self, keep: NDArray[np.bool_] | None = None, truth: NDArray[np.int64] | None = None
    ) -> Curves:
        """A curve for each pool over all areas, [pools, 1, T]; `keep` ([K]) is over the rows of
        the matches, `truth` ([C, …]) the objects to be found where not all of them."""
        return self._accumulate(keep, truth, points=False)[0]

    def points(self, keep: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """[pools, T, 101] the precision at each recall, for plots."""
        return self._accumulate(keep, None, points=True)[1][:, 0]

    def _accumulate(
        self, keep: NDArray[np.bool_] | None, truth: NDArray[np.int64] | None, *, points: bool
    ) -> tuple[Curves, NDArray[np.float64]]:
        of_class = (self._matches.truth if truth is None else truth)[:, 0]
        return accumulate(
            self._matches,
            np.array([[of_class[pool].sum()] for pool in self._pools], dtype=np.int64),
            self._offsets,
            order=self._order,
            keep=keep,
            points=points,
        )


def ranked_together(matches: Matches, score: NDArray[np.float64]) -> NDArray[np.int32]:
    """[K] all rows of the matches in one ranking."""
    rows = np.empty(len(matches), dtype=np.int32)
    rows[matches.position] = np.arange(len(matches), dtype=np.int32)
    return rows[_native.order_by_falling_score(score[matches.detection[rows]])]
