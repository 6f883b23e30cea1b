"""Average precision of each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.tables.matches import Matches
from lvdet.threads import thread_count

#: The recalls at which precision is read, as the reference tools make them.
RECALLS = np.linspace(0.0, 1.0, 101, endpoint=True)


@dataclass(frozen=True, eq=False)
class Curves:
    """Precision and recall of each class (or pool of classes); NaN where nothing can be found.

    precision: [C, A, T] float64, mean over the 101 recalls
    recall:    [C, A, T] float64, the highest reached
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]


def class_curves(matches: Matches, keep: NDArray[np.bool_] | None = None) -> Curves:
    """The curves of each class over the rows that `keep` ([K], None for all) leaves."""
    return accumulate(matches, matches.truth, matches.category_offsets, keep=keep)[0]


def class_precision(matches: Matches, keep: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """[C, T, 101] precision at each recall over all areas, for plots; NaN where undefined. `keep`
    as in `class_curves`."""
    truth = np.ascontiguousarray(matches.truth[:, :1])
    _, points = accumulate(matches, truth, matches.category_offsets, keep=keep, points=True)
    return np.ascontiguousarray(points[:, 0])


def accumulate(
    matches: Matches,
    truth: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *,
    order: NDArray[np.int32] | None = None,
    keep: NDArray[np.bool_] | None = None,
    points: bool = False,
    pools: tuple[NDArray[np.uint8], NDArray[np.int32]] | None = None,
) -> tuple[Curves, NDArray[np.float64]]:
    """Curves of any rankings of the rows of `matches`.

    truth: [curves, A] objects to find; offsets: [curves + 1] where each ranking begins in
    `order`, or among the rows themselves; keep: [K] over the rows. Also the precision at each
    recall, [curves, A, T, 101], empty unless `points`.

    pools: [curves, C] which classes each curve has, and [K] the class of each row. All curves have
    the one ranking then, but for rows of other classes.
    """
    precision, recall, at_recall = _native.accumulate(
        matches.outcomes,
        len(matches.thresholds),
        order,
        offsets,
        None if keep is None else keep.view(np.uint8),
        truth,
        RECALLS,
        points,
        pools,
        thread_count(),
    )
    return Curves(precision, recall), at_recall
