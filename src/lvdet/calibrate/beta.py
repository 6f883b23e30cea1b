"""Beta calibration, the form of three parameters (Kull et al. 2017)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate.logistic import Labelled, fit_logistic
from lvdet.calibrate.maps import Floats, LogOdds, log_sides
from lvdet.read.files import Progress

#: The weights that change nothing.
START = (1.0, 1.0, 0.0)


def fit_all(
    score: Floats,
    right: NDArray[np.bool_],
    offsets: NDArray[np.int64],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[LogOdds]:
    """For each class the most likely a, b and c with a and b of 0 or more, so that the map never
    falls."""
    data = Labelled(score, right, offsets, features, varied=2)
    start = np.tile(START, (len(offsets) - 1, 1))
    weights = fit_logistic(data, start, threads=threads, progress=progress)
    return [LogOdds(*row) for row in weights.tolist()]


def fit(score: Floats, right: NDArray[np.bool_]) -> LogOdds:
    """The map of one class."""
    (found,) = fit_all(score, right, np.array([0, len(score)]))
    return found


def features(score: Floats) -> Floats:
    """[3, N] what a, b and c are the weights of."""
    return np.stack([*log_sides(score), np.ones_like(score)])
