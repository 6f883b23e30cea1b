"""Maps from a detector's score to the probability of being correct: the result of a fit.

Three shapes cover all methods: a line in log odds, steps, and linear pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

#: Scores are clipped to this distance from 0 and 1 before taking log odds.
_EDGE = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class LogOdds:
    """log p/(1-p) = a log s - b log(1-s) + c: beta calibration, with Platt scaling (a = b),
    temperature scaling (a = b, c = 0) and the identity (a = b = 1, c = 0) as special cases."""

    a: float
    b: float
    c: float

    def __call__(self, score: Floats) -> Floats:
        """[N] probabilities of scores in [0, 1]."""
        if self == KEEP:
            return score
        log, log_not = log_sides(score)
        with np.errstate(over="ignore"):  # odds that overflow stand for 0 or 1
            return expit(self.a * log + self.b * log_not + self.c)


@dataclass(frozen=True, eq=False)
class Steps:
    """One value for each interval that `edges` ([K - 1], ascending) divide [0, 1] into; an edge
    belongs to the interval above it."""

    edges: Floats
    values: Floats

    def __call__(self, score: Floats) -> Floats:
        """[N] probabilities of scores in [0, 1]."""
        chance: Floats = self.values[np.searchsorted(self.edges, score, side="right")]
        return chance


@dataclass(frozen=True, eq=False)
class Lines:
    """Linear pieces between the points (`scores`, `values`), constant beyond them."""

    scores: Floats
    values: Floats

    def __call__(self, score: Floats) -> Floats:
        """[N] probabilities of scores in [0, 1]."""
        # The slope between scores below 1e-308 is infinite.
        return np.interp(score, self.scores, self.values).clip(0.0, 1.0)


Map: TypeAlias = LogOdds | Steps | Lines

KEEP = LogOdds(1.0, 1.0, 0.0)


def constant(value: float) -> Steps:
    """The same value for every score."""
    return Steps(np.zeros(0), np.array([value]))


def expit(value: Floats) -> Floats:
    """Probabilities of log odds."""
    with np.errstate(over="ignore"):  # e^x beyond all floats: the probability is 0
        return 1 / (1 + np.exp(-value))


def log_sides(score: Floats) -> tuple[Floats, Floats]:
    """log s and -log(1 - s), whose sum is the log odds."""
    inside = np.clip(score, _EDGE, 1 - _EDGE)
    return np.log(inside), -np.log1p(-inside)
