"""Beta calibration with three parameters (Kull et al. 2017): the most likely a, b and c with a, b
>= 0, so that the map never decreases."""

from __future__ import annotations

from lvdet.calibration.logistic import LineMethod
from lvdet.calibration.maps import LogOdds

#: The weights that change nothing.
START = (1.0, 1.0, 0.0)

_METHOD = LineMethod(START, varied=2, constant=True, to_map=LogOdds)
fit_all, fit = _METHOD.fit_all, _METHOD.fit
