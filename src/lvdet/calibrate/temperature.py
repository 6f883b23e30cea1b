"""Temperature: log odds divided by one number (Guo et al. 2017)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate.logistic import fit_logistic
from lvdet.calibrate.maps import Floats, LogOdds, log_sides


def fit(score: Floats, right: NDArray[np.bool_]) -> LogOdds:
    """The most likely temperature, as its inverse; what would be below 0 is 0."""
    odds = np.add(*log_sides(score))
    (slope,) = fit_logistic(odds[None], right, np.array([1.0]), rising=1)
    return LogOdds(float(slope), float(slope), 0.0)
