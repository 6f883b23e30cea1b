"""Keeps the order within a class where probabilities are equal.

Steps and constant pieces map many scores to one probability. Each such probability is shifted by
less than a millionth of its value, more for higher scores: enough for a float64, and for its
decimals in JSON, to tell apart any two scores that a float32 can. It depends on the score alone, so
equal scores stay equal and a file can be calibrated row by row.
"""

from __future__ import annotations

import numpy as np

from lvdet.calibration.maps import KEEP, Floats, Map

#: How far a chance may move, relative to itself.
_ROOM = 2.0**-20
#: Chances of less, 0 above all, are written as this, so that there is room to move.
_LEAST = 2.0**-40
#: Powers of two that scores may span: those of a float32.
_SPAN = 150.0


def calibrated(score_map: Map, score: Floats) -> Floats:
    """[N] calibrated scores: the map's probability, strictly increasing with the score wherever the
    map does not decrease."""
    if score_map == KEEP:
        return score
    inside = np.clip(score, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        level = np.clip(1 + np.log2(inside) / _SPAN, 0.0, 1.0)
    chance = np.maximum(score_map(inside), _LEAST)
    new: Floats = chance * (1 - _ROOM * (1 - level))
    return new
