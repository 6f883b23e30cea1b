"""Beta calibration, the form of three parameters (Kull et al. 2017): the most likely a, b and c
with a and b of 0 or more, so that the map never falls.
"""

from __future__ import annotations

import numpy as np

from lvdet.calibration.logistic import LineMethod
from lvdet.calibration.maps import Floats, LogOdds, log_sides

#: The weights that change nothing.
START = (1.0, 1.0, 0.0)


def features(score: Floats) -> Floats:
    """[3, N] what a, b and c are the weights of."""
    return np.stack([*log_sides(score), np.ones_like(score)])


_METHOD = LineMethod(features, 2, START, LogOdds)
fit_all, fit = _METHOD.fit_all, _METHOD.fit
