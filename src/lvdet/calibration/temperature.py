"""Temperature scaling (Guo et al. 2017): log odds divided by the most likely temperature, which is
fitted as its inverse; negative values are set to 0."""

from __future__ import annotations

from lvdet.calibration.logistic import LineMethod
from lvdet.calibration.maps import LogOdds


def _to_map(slope: float) -> LogOdds:
    return LogOdds(slope, slope, 0.0)


_METHOD = LineMethod((1.0,), varied=1, constant=False, to_map=_to_map)
fit_all, fit = _METHOD.fit_all, _METHOD.fit
