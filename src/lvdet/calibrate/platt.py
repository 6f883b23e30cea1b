"""Platt scaling: a straight line in log odds (Platt 1999)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate.logistic import fit_logistic
from lvdet.calibrate.maps import Floats, LogOdds, log_sides


def fit(score: Floats, right: NDArray[np.bool_]) -> LogOdds:
    """The most likely slope and offset, without Platt's smoothed labels (as in the paper); a slope
    below 0, which would turn the order round, is 0."""
    odds = np.add(*log_sides(score))
    features = np.stack([odds, np.ones_like(odds)])
    slope, offset = fit_logistic(features, right, np.array([1.0, 0.0]), rising=1)
    return LogOdds(float(slope), float(slope), float(offset))
