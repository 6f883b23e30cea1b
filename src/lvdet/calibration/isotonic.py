"""Isotonic regression: the best map that never decreases (Zadrozny and Elkan 2002)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.calibration.maps import Floats, Lines


def fit(score: Floats, right: NDArray[np.bool_]) -> Lines:
    """Linear pieces between the scores; `score` is sorted in descending order."""
    score, right = score[::-1], right[::-1]
    first = np.flatnonzero(np.diff(score, prepend=-1.0))
    count = np.diff(first, append=len(score)).astype(np.float64)
    value = _native.fit_isotonic(np.add.reduceat(right, first, dtype=np.float64), count)
    level = value[1:] == value[:-1]
    inside = np.append(False, level) & np.append(level, False)  # the ends of a level are enough
    return Lines(score[first][~inside], value[~inside])
