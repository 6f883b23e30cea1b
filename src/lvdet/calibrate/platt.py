"""Platt scaling: a straight line in log odds (Platt 1999)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate.logistic import Labelled, fit_logistic
from lvdet.calibrate.maps import Floats, LogOdds, log_sides
from lvdet.read.files import Progress


def fit_all(
    score: Floats,
    right: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[LogOdds]:
    """For each class the most likely slope and offset, without Platt's smoothed labels (as in the
    paper); a slope below 0, which would turn the order round, is 0."""
    data = Labelled(score, right, offsets, _features, varied=1)
    start = np.tile((1.0, 0.0), (len(offsets) - 1, 1))
    weights = fit_logistic(data, start, threads=threads, progress=progress)
    return [LogOdds(slope, slope, offset) for slope, offset in weights.tolist()]


def fit(score: Floats, right: NDArray[np.bool_]) -> LogOdds:
    """The map of one class."""
    (found,) = fit_all(score, right, np.array([0, len(score)]))
    return found


def _features(score: Floats) -> Floats:
    """[2, N] log odds and 1."""
    return np.stack([np.add(*log_sides(score)), np.ones_like(score)])
