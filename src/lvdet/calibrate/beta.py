"""Beta calibration, the form of three parameters (Kull et al. 2017)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate.logistic import fit_logistic
from lvdet.calibrate.maps import Floats, LogOdds, log_sides


def fit(score: Floats, right: NDArray[np.bool_]) -> LogOdds:
    """The most likely a, b and c with a and b of 0 or more, so that the map never falls."""
    weights = fit_logistic(features(score), right, np.array([1.0, 1.0, 0.0]), rising=2)
    return LogOdds(*weights.tolist())


def features(score: Floats) -> Floats:
    """[3, N] what a, b and c are the weights of."""
    return np.stack([*log_sides(score), np.ones_like(score)])
