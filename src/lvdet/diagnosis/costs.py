"""The cost of each kind of error: AP after an oracle fixes that kind alone, minus AP before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
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
from lvdet.evaluation.average_precision import accumulate
from lvdet.evaluation.pair import Pair
from lvdet.tables.matches import Matches
from lvdet.tables.outcomes import Outcomes

#: All incorrect detections at once, and all objects that were not found.
TOTALS = ("false positives", "false negatives")


@dataclass(frozen=True, eq=False)
class Costs:
    """AP of each class before and after fixing errors, and the objects that were missed.

    before:  [C] float64, AP; NaN if there is nothing to find
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
) -> Costs:
    """Computes the costs over these classes; `objects` ([M]) are those that count.

    A classification or localisation error is mended where its object was not found and no error
    of either kind with a higher score points at the same object: it becomes right, in the object's
    class, with the score it has. The others of its kind are taken away, as are duplicates,
    background and both. A missed object need not be found any more; a class with none left is
    undefined, and leaves the mean.
    """
    gt = pair.gt
    score = pair.results.detections.score[rows.detection]
    right = rows.kind == RIGHT
    counted = rows.kind <= RIGHT
    member = np.zeros(len(gt.categories), dtype=bool)
    member[classes] = True
    objects = objects & member[gt.category]
    found = np.zeros(len(gt), dtype=bool)
    found[rows.target[right]] = True
    points = (rows.kind == CLASSIFICATION) | (rows.kind == LOCALISATION)
    pointed = np.zeros(len(gt), dtype=bool)
    pointed[rows.target[points]] = True
    unfound = np.flatnonzero(objects & ~found)
    missed = np.flatnonzero(objects & ~found & ~pointed)

    truth = _each(gt.category[objects], len(gt.categories))
    precision = partial(_precision, matches)
    after = np.empty((len(KINDS) + len(TOTALS), len(truth)))
    for kind in (BOTH, DUPLICATE, BACKGROUND):
        after[kind] = precision(right, counted & (rows.kind != kind), truth)

    points[points] = ~found[rows.target[points]]
    best = _best_of_each_object(rows, score, points)
    placed = best & (rows.kind == LOCALISATION)
    kept = counted & ((rows.kind != LOCALISATION) | placed)
    after[LOCALISATION] = precision(right | placed, kept, truth)

    renamed = best & (rows.kind == CLASSIFICATION)
    kept = counted & ((rows.kind != CLASSIFICATION) | renamed)
    category = rows.category.copy()
    category[renamed] = gt.category[rows.target[renamed]]
    order = _ranked_again(pair, rows, score, category, kept)
    offsets = np.append(0, np.cumsum(_each(category[order], len(truth))))
    after[CLASSIFICATION] = precision(right | renamed, kept, truth, order=order, offsets=offsets)

    fewer = (truth - _each(gt.category[gone], len(truth)) for gone in (missed, unfound))
    after[MISSED], after[-1] = (precision(right, counted, left) for left in fewer)
    after[-2] = precision(right, right, truth)
    return Costs(precision(right, counted, truth), after, missed, unfound)


def _each(category: NDArray[np.int32], classes: int) -> NDArray[np.int64]:
    """[C] the number of rows of each class."""
    return _native.count_rows(category, classes)


def _best_of_each_object(
    rows: Rows, score: NDArray[np.float64], among: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """[K] among rows that point at the same object, the one with the highest score; ties go to the
    first in the file."""
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
    """The kept rows, ranked in other classes as matching ranks them: by descending score, ties by
    image, then by file order."""
    detections = pair.results.detections
    # Most are ranked already. The few others, and those that have the score of one, are put in.
    moved = kept & (category != rows.category)
    stays = np.flatnonzero(kept & ~moved).astype(np.int32)
    few = np.flatnonzero(moved).astype(np.int32)
    begins = np.append(0, np.cumsum(_each(category[stays], len(pair.gt.categories))))
    of_class = category[few]
    spans = begins[of_class], begins[of_class + 1]
    first = _first(score, stays, *spans, lambda ours: ours <= score[few])
    last = _first(score, stays, *spans, lambda ours: ours < score[few])
    ties = {span for span in zip(first.tolist(), last.tolist(), strict=True) if span[0] < span[1]}
    tied = np.concatenate([np.arange(0), *(np.arange(*span) for span in sorted(ties))])
    before = np.append(first, tied)  # how many stay before each
    few = np.append(few, stays[tied])
    ids = detections.image_ids[detections.image[rows.detection[few]]]
    order = np.lexsort((rows.detection[few], ids, -score[few], category[few]))
    before -= np.searchsorted(tied, before)
    return np.insert(np.delete(stays, tied), before[order], few[order])


def _first(
    score: NDArray[np.float64],
    rows: NDArray[np.int32],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    holds: Callable[[NDArray[np.float64]], NDArray[np.bool_]],
) -> NDArray[np.int64]:
    """[n] the first place of each span of rows, of descending score, from which on something holds
    of the score; its end where nowhere."""
    low, high = begin.copy(), end.copy()
    while (open_ := low < high).any():
        middle = (low + high) // 2
        found = holds(score[rows[np.minimum(middle, len(rows) - 1)]])
        high = np.where(open_ & found, middle, high)
        low = np.where(open_ & ~found, middle + 1, low)
    return low


def _precision(
    matches: Matches,
    right: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    truth: NDArray[np.int64],
    *,
    order: NDArray[np.int32] | None = None,
    offsets: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """[C] AP for any choice of kept and correct rows; NaN if there is nothing to find."""
    if order is not None:
        right, kept = right[order], kept[order]
    curves, _ = accumulate(
        Outcomes.at_one_threshold(right),
        1,
        truth.reshape(-1, 1),
        matches.category_offsets if offsets is None else offsets,
        keep=kept,
    )
    return curves.precision[:, 0, 0]
