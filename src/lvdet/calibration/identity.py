"""No calibration: scores are unchanged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.maps import KEEP, Floats, LogOdds


def fit(score: Floats, right: NDArray[np.bool_]) -> LogOdds:
    """The map that changes nothing."""
    return KEEP
