"""Bayesian binning into quantiles, with bins of equal width as in netcal and the paper (Naeini et
al. 2015): histograms of many sizes, weighted by how well each explains the labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.histogram import bin_edges, counts_below
from lvdet.calibration.maps import Floats, Steps

#: Histograms are kept while each is worse than the one before by more than this share of the
#: scores' variance.
_ELBOW = 0.001


def _fit(score: Floats, right: NDArray[np.bool_], *, bic: bool) -> Steps:
    """The weighted mean of the best histograms; `score` is sorted in descending order."""
    count = len(score)
    root = float(np.cbrt(count))
    sizes = _sizes(max(1, int(root / 10)), int(min(np.ceil(count / 5), np.ceil(root * 10))))
    rows, of_right = counts_below(score, right, sizes.edges)
    # Each histogram's counts at its own edges, from 0 to everything.
    below = np.append(rows, [0, count])[sizes.at]
    right_below = np.append(of_right, [0, np.count_nonzero(right)])[sizes.at]
    number, hits = np.diff(below)[sizes.inner], np.diff(right_below)[sizes.inner]
    share = hits / np.maximum(number, 1)
    loss = -hits * np.log(np.maximum(share, 1e-300)) - (number - hits) * np.log(
        np.maximum(1 - share, 1e-300)
    )
    penalty = (np.log(count) if bic else 2.0) * sizes.bins
    criterion = penalty + 2 * np.add.reduceat(loss, sizes.first)
    kept, weight = _elbow(np.exp((criterion.min() - criterion) / 2))
    return _mean(sizes, np.where(number > 0, share, sizes.middle), kept, weight)


fit_aic, fit_bic = partial(_fit, bic=False), partial(_fit, bic=True)


@dataclass(frozen=True, eq=False)
class _Sizes:
    """Histograms of M sizes, with B bins in total, concatenated.

    bins:   [M] how many bins each has
    first:  [M] where each one's bins begin
    edges:  [E] all edges between bins, rising, without repeats
    at:     [B + M] the edges of each histogram, both ends included, as places in `edges`;
            E for 0 and E + 1 for 1
    inner:  [B] which of the differences along `at` are bins
    middle: [B] of each bin
    """

    bins: NDArray[np.int64]
    first: NDArray[np.int64]
    edges: Floats
    at: NDArray[np.int64]
    inner: NDArray[np.int64]
    middle: Floats


@lru_cache(maxsize=64)
def _sizes(least: int, most: int) -> _Sizes:
    bins = np.arange(least, most + 1)
    of_each = [bin_edges(number) for number in bins.tolist()]
    edges, place = np.unique(np.concatenate([own[1:-1] for own in of_each]), return_inverse=True)
    ends = np.cumsum(bins - 1)
    at = [
        np.concatenate([[len(edges)], place[end - number + 1 : end], [len(edges) + 1]])
        for number, end in zip(bins, ends, strict=True)
    ]
    first = np.cumsum(bins) - bins
    return _Sizes(
        bins,
        first,
        edges,
        np.concatenate(at),
        np.arange(bins.sum()) + np.repeat(np.arange(len(bins)), bins),
        np.concatenate([(own[:-1] + own[1:]) / 2 for own in of_each]),
    )


def _elbow(likelihood: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The histograms to keep, and their weights."""
    order = np.argsort(-likelihood, kind="stable")
    ranked = likelihood[order]
    drop = ranked[:-1] - ranked[1:]
    variance = ranked.var()
    kept = 0
    while kept < len(drop) and drop[kept] == 0:
        kept += 1
    while kept < len(drop) and drop[kept] > _ELBOW * variance:
        kept += 1
    best = order[: kept + 1]
    weight: Floats = likelihood[best] / likelihood[best].sum()
    return best, weight


def _mean(sizes: _Sizes, value: Floats, kept: NDArray[np.int64], weight: Floats) -> Steps:
    """The weighted mean of the histograms: it has a step wherever one of them does."""
    start, rise = 0.0, np.zeros(len(sizes.edges))
    used = np.zeros(len(sizes.edges), dtype=bool)
    for histogram, share in zip(kept.tolist(), weight.tolist(), strict=True):
        first, bins = sizes.first[histogram], sizes.bins[histogram]
        own = value[first : first + bins]
        inner = sizes.at[first + histogram + 1 : first + histogram + bins]
        start += share * own[0]
        rise[inner] += share * np.diff(own)
        used[inner] = True
    values = start + np.cumsum(rise[used])
    return Steps(sizes.edges[used], np.append(start, values).clip(0.0, 1.0))
