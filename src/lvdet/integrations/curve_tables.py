"""Precision, scores and recall of classes, as the reference tools tabulate them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lvdet import _native
from lvdet.tables.outcomes import Outcomes
from lvdet.threads import thread_count

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CurveTables:
    """Curves of K classes at T thresholds and R recalls; −1 where a class has nothing to find.

    precision, score: [T, R, K]; recall: [T, K]
    """

    precision: Floats
    score: Floats
    recall: Floats


@dataclass(frozen=True, eq=False)
class RankedOutcomes:
    """Detections of one class by descending score: [N] scores, [T, N] whether they are matched and
    not counted, and how many objects are to be found."""

    scores: Floats
    matched: NDArray[np.bool_]
    ignored: NDArray[np.bool_]
    truth: int


def curve_tables(
    outcomes: Outcomes,
    thresholds: int,
    offsets: NDArray[np.int64],
    truth: NDArray[np.int64],
    recalls: ArrayLike,
    scores: Floats,
    *,
    scope: int = 0,
    keep: NDArray[np.bool_] | None = None,
) -> CurveTables:
    """The tables of rankings, rows offsets[k] to offsets[k + 1], by descending score."""
    precision, score, recall = _native.curve_points(
        outcomes.columns,
        thresholds,
        scope,
        offsets,
        None if keep is None else keep.view(np.uint8),
        truth,
        np.ascontiguousarray(recalls, dtype=np.float64),
        np.ascontiguousarray(scores),
        thread_count(),
    )
    for table in (precision, score, recall):
        table[truth == 0] = -1
    return CurveTables(precision.transpose(1, 2, 0), score.transpose(1, 2, 0), recall.T)


def tables_of_classes(
    classes: Sequence[RankedOutcomes], thresholds: int, recalls: ArrayLike
) -> CurveTables:
    """The tables of outcomes that were matched elsewhere."""
    bits = np.stack(
        [
            _packed([one.matched for one in classes], thresholds),
            _packed([one.ignored for one in classes], thresholds),
        ],
        axis=1,
    )
    rows = len(bits)
    return curve_tables(
        Outcomes(np.zeros(rows, np.uint8), np.arange(rows, dtype=np.int32), bits[:, None]),
        thresholds,
        np.cumsum([0, *(len(one.scores) for one in classes)], dtype=np.int64),
        np.array([one.truth for one in classes], dtype=np.int64),
        recalls,
        np.concatenate([np.zeros(0), *(one.scores for one in classes)]),
    )


def _packed(flags: Sequence[NDArray[np.bool_]], thresholds: int) -> NDArray[np.uint8]:
    """[N, bytes] the bits of all rows."""
    rows = np.concatenate([np.zeros((thresholds, 0), dtype=bool), *flags], axis=1)
    return np.packbits(rows.T, axis=1, bitorder="little")
