"""The spread over training runs, for detectors trained several times with different seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray


def pooled_deviation(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """The pooled standard deviation within groups, NaN if there is none, and its degrees of
    freedom."""
    arrays = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    freedom = sum(len(group) - 1 for group in arrays)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in arrays)
    return (math.sqrt(squares / freedom) if freedom else math.nan), freedom


def student(freedom: int, confidence: float) -> float:
    """The half-width of Student's interval in standard errors."""
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _within(middle, freedom) < confidence:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(high)


def _within(angle: float, freedom: int) -> float:
    """The probability that |t| < sqrt(freedom) * tan(angle), in closed form (Abramowitz and
    Stegun 26.7.3 and 26.7.4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(1, freedom // 2 + 1):
        total += term
        term *= (2 * k - 1 + odd) / (2 * k + odd) * cosine**2
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def run_errors(values: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """[…] of the numbers of detectors and their runs ([detectors, runs, …]): the standard error of
    a difference between two detectors, as one whose normal interval is as wide as Student's. The
    deviation over runs is pooled over detectors; 0 if there is one run of each."""
    detectors, runs = values.shape[:2]
    if runs == 1:
        return np.zeros(values.shape[2:])
    deviation = np.sqrt(values.var(axis=1, ddof=1).mean(axis=0))
    wider = student(detectors * (runs - 1), confidence) / NormalDist().inv_cdf((1 + confidence) / 2)
    error: NDArray[np.float64] = deviation * math.sqrt(2 / runs) * wider
    return error
