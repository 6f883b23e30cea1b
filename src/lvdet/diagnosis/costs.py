"""What each kind of error costs: AP after an oracle mends that kind alone, less AP before."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet.diagnosis.kinds import (
    BACKGROUND,
    BOTH,
    CLASSIFICATION,
    DUPLICATE,
    KINDS,
    LOCALISATION,
    MISSED,
    RIGHT,
    Rows,
)
from lvdet.metrics.average_precision import accumulate
from lvdet.metrics.inputs import Pair
from lvdet.tables.matches import Matches

#: All wrong detections at once, and all objects that were not found.
TOTALS = ("false positives", "false negatives")


@dataclass(frozen=True, eq=False)
class Costs:
    """AP of each class, and what is missing.

    before:  [C] float64, AP; NaN where there is nothing to find
    after:   [kinds + 2, C] float64, AP with one kind mended, in the order of `KINDS` and `TOTALS`
    missed:  rows of `GroundTruth` that no detection found and no error points at
    unfound: rows that no detection found
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    missed: NDArray[np.int64]
    unfound: NDArray[np.int64]


def work_out(
    pair: Pair,
    matches: Matches,
    rows: Rows,
    objects: NDArray[np.bool_],
    classes: NDArray[np.int64],
    *,
    threads: int | None,
) -> Costs:
    """The costs over these classes; `objects` ([M]) are those that count.

    A classification or localisation error is mended where its object was not found and no error
    of either kind with a higher score points at the same object: it becomes right, in the object's
    class, with the score it has. The others of its kind are taken away, as are duplicates,
    background and both. A missed object need not be found any more; a class with none left is
    undefined, and leaves the mean.
    """
    gt = pair.gt
    score = pair.results.detections.score[rows.detection]
    right = rows.kind == RIGHT
    wrong = rows.kind < len(KINDS)
    counted = right | wrong
    member = np.zeros(len(gt.categories), dtype=bool)
    member[classes] = True
    objects = objects & member[gt.category]

    taken = np.zeros(len(gt), dtype=bool)
    taken[rows.target[right]] = True
    points = (rows.kind == CLASSIFICATION) | (rows.kind == LOCALISATION)
    pointed = np.zeros(len(gt), dtype=bool)
    pointed[rows.target[points]] = True
    mended = _best_of_each_object(rows, score, points & ~np.append(taken, False)[rows.target])
    unfound = np.flatnonzero(objects & ~taken)
    missed = np.flatnonzero(objects & ~taken & ~pointed)

    truth = np.bincount(gt.category[objects], minlength=len(gt.categories))
    curves = _Curves(matches, threads)
    after = np.empty((len(KINDS) + len(TOTALS), len(truth)))
    for kind in (BOTH, DUPLICATE, BACKGROUND):
        after[kind] = curves.precision(right, counted & (rows.kind != kind), truth)
    for kind in (CLASSIFICATION, LOCALISATION):
        now_right = mended & (rows.kind == kind)
        kept = counted & ((rows.kind != kind) | now_right)
        if kind == LOCALISATION:
            after[kind] = curves.precision(right | now_right, kept, truth)
            continue
        category = rows.category.copy()
        category[now_right] = gt.category[rows.target[now_right]]
        order = _ranked_again(pair, rows, score, category, kept)
        ends = np.cumsum(np.bincount(category[order], minlength=len(truth)))
        after[kind] = curves.precision(
            right | now_right, kept, truth, order=order, offsets=np.append(0, ends)
        )
    after[MISSED] = curves.precision(right, counted, truth - _each(gt.category[missed], truth))
    after[len(KINDS)] = curves.precision(right, right, truth)
    after[len(KINDS) + 1] = curves.precision(
        right, counted, truth - _each(gt.category[unfound], truth)
    )
    return Costs(curves.precision(right, counted, truth), after, missed, unfound)


def _each(category: NDArray[np.int32], truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """[C] how many there are of each class."""
    return np.bincount(category, minlength=len(truth))


def _best_of_each_object(
    rows: Rows, score: NDArray[np.float64], among: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """[K] of the rows that point at the same object, the one of highest score; the first in the
    file among equals."""
    places = np.flatnonzero(among)
    target = rows.target[places]
    order = np.lexsort((rows.detection[places], -score[places], target))
    first = np.append(True, np.diff(target[order]) != 0)[: len(order)]
    best = np.zeros(len(rows), dtype=bool)
    best[places[order[first]]] = True
    return best


def _ranked_again(
    pair: Pair,
    rows: Rows,
    score: NDArray[np.float64],
    category: NDArray[np.int32],
    kept: NDArray[np.bool_],
) -> NDArray[np.int32]:
    """The rows kept, ranked in other classes as matching ranks them: by falling score, equal
    scores by image, then in the order of the file."""
    places = np.flatnonzero(kept).astype(np.int32)
    image = pair.results.detections.image[rows.detection[places]]
    ids = pair.results.detections.image_ids[image]
    keys = (rows.detection[places], ids, -score[places], category[places])
    return places[np.lexsort(keys)]


class _Curves:
    """AP of each class, for any choice of rows that are kept and right."""

    def __init__(self, matches: Matches, threads: int | None) -> None:
        self._matches, self._threads = matches, threads

    def precision(
        self,
        right: NDArray[np.bool_],
        kept: NDArray[np.bool_],
        truth: NDArray[np.int64],
        *,
        order: NDArray[np.int32] | None = None,
        offsets: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float64]:
        """[C] AP; NaN where there is nothing to find."""
        outcomes = np.zeros((len(right), 1, 2, 1), dtype=np.uint8)
        outcomes[:, 0, 0, 0] = right
        curves, _ = accumulate(
            replace(self._matches, outcomes=outcomes),
            truth.reshape(-1, 1),
            self._matches.category_offsets if offsets is None else offsets,
            order=order,
            keep=kept,
            threads=self._threads,
        )
        return curves.precision[:, 0, 0]
