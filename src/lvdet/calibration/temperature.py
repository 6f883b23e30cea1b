"""Temperature (Guo et al. 2017): log odds divided by the most likely number, which is fitted as its
inverse; what would be below 0 is 0.
"""

from __future__ import annotations

import numpy as np

from lvdet.calibration.logistic import LineMethod
from lvdet.calibration.maps import Floats, LogOdds, log_sides


def _features(score: Floats) -> Floats:
    """[1, N] log odds."""
    return np.add(*log_sides(score))[None]


def _to_map(slope: float) -> LogOdds:
    return LogOdds(slope, slope, 0.0)


_METHOD = LineMethod(_features, 1, (1.0,), _to_map)
fit_all, fit = _METHOD.fit_all, _METHOD.fit
