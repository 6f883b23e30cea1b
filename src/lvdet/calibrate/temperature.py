"""Temperature: log odds divided by one number (Guo et al. 2017)."""

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
    """For each class the most likely temperature, as its inverse; what would be below 0 is 0."""
    data = Labelled(score, right, offsets, _features, varied=1)
    start = np.ones((len(offsets) - 1, 1))
    weights = fit_logistic(data, start, threads=threads, progress=progress)
    return [LogOdds(slope, slope, 0.0) for (slope,) in weights.tolist()]


def fit(score: Floats, right: NDArray[np.bool_]) -> LogOdds:
    """The map of one class."""
    (found,) = fit_all(score, right, np.array([0, len(score)]))
    return found


def _features(score: Floats) -> Floats:
    """[1, N] log odds."""
    return np.add(*log_sides(score))[None]
