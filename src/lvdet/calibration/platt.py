"""Platt scaling (Platt 1999): the most likely slope and offset in log odds, without Platt's
smoothed labels (as in the paper). A negative slope, which would reverse the order, is set to 0."""

from __future__ import annotations

from lvdet.calibration.logistic import LineMethod
from lvdet.calibration.maps import LogOdds


def _to_map(slope: float, offset: float) -> LogOdds:
    return LogOdds(slope, slope, offset)


_METHOD = LineMethod((1.0, 0.0), varied=1, constant=True, to_map=_to_map)
fit_all, fit = _METHOD.fit_all, _METHOD.fit
