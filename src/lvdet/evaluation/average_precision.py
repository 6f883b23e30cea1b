"""Average precision of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.tables.matches import Matches
from lvdet.tables.outcomes import Outcomes
from lvdet.threads import thread_count

#: The recalls at which precision is read, as the reference tools make them.
RECALLS = np.linspace(0.0, 1.0, 101, endpoint=True)


@dataclass(frozen=True, eq=False)
class Curves:
    """Precision and recall of each class (or pool of classes); NaN where nothing can be found.

    precision: [C, A, T] float64, mean over the 101 recalls
    recall:    [C, A, T] float64, the highest reached
    lowest, highest: [C, T] float64, bounds of the precision over all areas and all orders of equal
        scores; empty if not requested
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ties:
    """Marks hits whose score is shared by another row of their ranking.

    tied: [H] uint8
    order, detection, score: the score of a row is score[detection[order[row]]], or, if there is no
        order, score[detection[row]]
    """

    tied: NDArray[np.uint8]
    order: NDArray[np.int32] | None
    detection: NDArray[np.int32]
    score: NDArray[np.float64]

    @staticmethod
    def of(
        outcomes: Outcomes,
        offsets: NDArray[np.int64],
        order: NDArray[np.int32] | None,
        detection: NDArray[np.int32],
        score: NDArray[np.float64],
    ) -> Ties:
        """The ties of rankings, rows offsets[r] to offsets[r + 1] of the outcomes."""
        scores = (order, detection, score)
        tied = _native.find_ties(outcomes.columns, offsets, scores, thread_count())
        return Ties(tied, *scores)


#: Rows kept (None for all), and the curves over them.
Known: TypeAlias = tuple[NDArray[np.bool_] | None, Curves]


def class_curves(
    matches: Matches,
    keep: NDArray[np.bool_] | None = None,
    truth: NDArray[np.int64] | None = None,
    known: Sequence[Known] = (),
    ties: Ties | None = None,
) -> Curves:
    """The curves of each class over the rows that `keep` ([K], None for all) selects. `truth` ([C,
    A]) are the objects to find, if not all objects in every area range. `known` are curves of the
    same truth over other rows, because many budgets keep the same rows of a class. With `ties` of
    the outcomes, also computes bounds, which the known curves must then have as well."""
    truth = matches.truth if truth is None else truth
    return _of_classes(matches, truth, keep, known=known, ties=ties)[0]


def class_precision(matches: Matches, keep: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """[C, T, 101] precision at each recall over all areas, for plots; NaN where undefined. `keep`
    as in `class_curves`."""
    truth = np.ascontiguousarray(matches.truth[:, :1])
    return np.ascontiguousarray(_of_classes(matches, truth, keep, points=True)[1][:, 0])


def accumulate(
    outcomes: Outcomes,
    thresholds: int,
    truth: NDArray[np.int64],
    offsets: NDArray[np.int64],
    *,
    keep: NDArray[np.bool_] | None = None,
    known: Sequence[Known] = (),
    ties: Ties | None = None,
    points: bool = False,
) -> tuple[Curves, NDArray[np.float64]]:
    """Curves of any rankings: rows offsets[r] to offsets[r + 1] of the outcomes, by descending
    score.

    truth: [R, S] objects to find, in the first S scopes; offsets: [R + 1]; keep: [K] over the
    rows; known: the same curves over other rows. Also the precision at each recall,
    [R, S, T, 101], empty unless `points`.
    """
    precision, recall, lowest, highest, at_recall = _native.accumulate(
        outcomes.columns,
        thresholds,
        offsets,
        _flags(keep),
        truth,
        RECALLS,
        [_columns(rows, curves) for rows, curves in known],
        None if ties is None else (ties.tied, (ties.order, ties.detection, ties.score)),
        points,
        thread_count(),
    )
    return Curves(precision, recall, lowest, highest), at_recall


def _of_classes(
    matches: Matches,
    truth: NDArray[np.int64],
    keep: NDArray[np.bool_] | None,
    *,
    known: Sequence[Known] = (),
    ties: Ties | None = None,
    points: bool = False,
) -> tuple[Curves, NDArray[np.float64]]:
    return accumulate(
        matches.outcomes,
        len(matches.thresholds),
        truth,
        matches.category_offsets,
        keep=keep,
        known=known,
        ties=ties,
        points=points,
    )


def _flags(keep: NDArray[np.bool_] | None) -> NDArray[np.uint8] | None:
    return None if keep is None else keep.view(np.uint8)


def _columns(keep: NDArray[np.bool_] | None, curves: Curves) -> tuple[Any, ...]:
    return _flags(keep), curves.precision, curves.recall, curves.lowest, curves.highest
