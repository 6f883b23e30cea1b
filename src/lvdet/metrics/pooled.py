"""AP-Pool: matching inside each class, one ranking over all classes (the paper, section 6)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.metrics.average_precision import Curves, accumulate
from lvdet.tables.matches import Matches


def pooled_order(
    matches: Matches,
    score: NDArray[np.float64],
    keep: NDArray[np.bool_] | None = None,
) -> NDArray[np.int32]:
    """Rows of `matches` by falling score over all classes; equal scores by image, then class,
    then rank in that class and image. `score` and `keep` ([N]) belong to the detections."""
    rows = np.empty(len(matches), dtype=np.int32)
    rows[matches.position] = np.arange(len(matches), dtype=np.int32)
    if keep is not None:
        rows = rows[keep[matches.detection[rows]]]
    return rows[_native.order_by_falling_score(score[matches.detection[rows]])]


def pooled_curves(
    matches: Matches,
    score: NDArray[np.float64],
    pools: Sequence[NDArray[np.int64]],
    keep: NDArray[np.bool_] | None = None,
    *,
    threads: int | None = None,
) -> Curves:
    """One curve for each pool of classes, over all areas: arrays are [pools, 1, T]."""
    order = pooled_order(matches, score, keep)
    category = matches.category[order]
    rankings, truth = [], []
    for pool in pools:
        member = np.zeros(matches.truth.shape[0], dtype=bool)
        member[pool] = True
        rankings.append(order if member.all() else order[member[category]])
        truth.append(matches.truth[pool, 0].sum())
    curves, _ = accumulate(
        matches,
        np.array(truth, dtype=np.int64).reshape(-1, 1),
        np.concatenate([[0], np.cumsum([len(rows) for rows in rankings])]).astype(np.int64),
        order=np.concatenate(rankings),
        threads=threads,
    )
    return curves
