"""AP-Pool: matching inside each class, one ranking over all classes (the paper, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.average_precision import Curves, accumulate
from lvdet.tables.matches import Matches


class Pools:
    """Pools of classes (rows), each with its detections in one ranking: by falling score over all
    its classes, equal scores by image, then class, then rank in that class and image."""

    def __init__(self, matches: Matches, pools: Sequence[NDArray[np.int64]]) -> None:
        self._matches, self._pools = matches, pools
        self._member = np.zeros((len(pools), len(matches.truth)), dtype=np.uint8)
        for number, pool in enumerate(pools):
            self._member[number, pool] = 1
        self._category = matches.category

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
            np.array([0, len(self._matches)]),
            order=self._matches.together,
            keep=keep,
            points=points,
            pools=(self._member, self._category),
        )
