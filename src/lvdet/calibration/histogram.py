"""Histogram binning: the share of correct detections in each of 20 bins (Zadrozny and Elkan
2001)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.maps import Floats, Steps

BINS = 20


def fit(score: Floats, right: NDArray[np.bool_]) -> Steps:
    """Bins of equal width; an empty bin gets its midpoint. `score` is sorted in descending
    order."""
    edges = bin_edges(BINS)
    rows, of_right = counts_below(score, right, edges[1:-1])
    count, hits = (
        np.diff(rows, prepend=0, append=len(score)),
        np.diff(of_right, prepend=0, append=np.count_nonzero(right)),
    )
    middle = (edges[:-1] + edges[1:]) / 2
    return Steps(edges[1:-1], np.where(count > 0, hits / np.maximum(count, 1), middle))


def bin_edges(bins: int) -> Floats:
    """[bins + 1] from 0 to 1, each the float nearest to its fraction: exactly 0.15, not slightly
    above."""
    return np.arange(bins + 1) / bins


def counts_below(
    score: Floats, right: NDArray[np.bool_], edges: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The number of scores below each edge, and how many of them are correct; `score` is sorted in
    descending order."""
    rows = np.searchsorted(score[::-1], edges, side="left")
    total = np.zeros(len(score) + 1, dtype=np.int64)
    np.cumsum(right[::-1], out=total[1:])
    return rows, total[rows]
