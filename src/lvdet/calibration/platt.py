"""Platt scaling (Platt 1999): the most likely slope and offset in log odds, without Platt's
smoothed labels (as in the paper); a slope below 0, which would turn the order round, is 0.
"""

from __future__ import annotations

import numpy as np

from lvdet.calibration.logistic import LineMethod
from lvdet.calibration.maps import Floats, LogOdds, log_sides


def _features(score: Floats) -> Floats:
    """[2, N] log odds and 1."""
    return np.stack([np.add(*log_sides(score)), np.ones_like(score)])


def _to_map(slope: float, offset: float) -> LogOdds:
    return LogOdds(slope, slope, offset)


_METHOD = LineMethod(_features, 1, (1.0, 0.0), _to_map)
fit_all, fit = _METHOD.fit_all, _METHOD.fit
