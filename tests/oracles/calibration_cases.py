"""Seeded random classes to calibrate: scores and whether each is right.

A class has the size, the spread of scores, the decimals and the share of right ones that its
seed draws. Its true chances follow a distorted line in log odds, sometimes a falling one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Class = tuple[Floats, NDArray[np.bool_]]

SIZES = (5, 10_000)
RATES = (1e-3, 0.999)
SHAPES = ((2.0, 5.0), (0.5, 0.5), (1.0, 1.0), (0.2, 4.0), (0.3, 20.0), (6.0, 0.3), (40.0, 1.5))
SLOPES = (-0.7, 0.05, 0.3, 1.0, 1.0, 2.5)
#: Added to rounded scores. No fraction i/m equals a rounded number plus this, so that no score
#: stands on the edge of a bin.
HAIR = np.pi * 1e-7


def random_class(seed: int, *, sizes: tuple[int, int] = SIZES, on_edges: bool = False) -> Class:
    """(descending scores in (0, 1), right) of one class; of rounded ones many are equal.

    With `on_edges`, rounded scores stay where they are, and many are the edges of bins.
    """
    rng = np.random.default_rng([seed, 20])
    size = round(np.exp(rng.uniform(*np.log(sizes))))
    score = rng.beta(*SHAPES[rng.integers(len(SHAPES))], size)
    decimals = int(rng.choice([2, 3, 4, 5, 32]))
    if decimals < 32:
        score = np.round(score, decimals) + (0.0 if on_edges else HAIR)
    else:
        score = score.astype(np.float32).astype(np.float64)
    score = -np.sort(-np.clip(score, 1e-9, 1 - 2.0**-24))
    rate = rng.choice([rng.uniform(0.02, 0.98), *_ends(rng)])
    chance = _distorted(score, SLOPES[rng.integers(len(SLOPES))], rate)
    return score, rng.random(size) < chance


def _ends(rng: np.random.Generator) -> tuple[float, float]:
    """A share near the lowest, and one near the highest."""
    low = np.exp(rng.uniform(np.log(RATES[0]), np.log(0.05)))
    return low, 1 - low


def _distorted(score: Floats, slope: float, rate: float) -> Floats:
    """Chances along a line in log odds whose offset makes their mean the rate."""
    odds = slope * (np.log(score) - np.log1p(-score))
    low, high = -100.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(odds + middle).mean() < rate else (low, middle)
    return _sigmoid(odds + low)


def _sigmoid(odds: Floats) -> Floats:
    return 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
