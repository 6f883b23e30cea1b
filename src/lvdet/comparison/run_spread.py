"""The spread over training runs, for detectors trained several times with different seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit


def pooled_deviation(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """The pooled standard deviation within groups, NaN if there is none, and its degrees of
    freedom."""
    arrays = [np.asarray(group, dtype=np.float64) for group in groups if len(group)]
    freedom = sum(len(group) - 1 for group in arrays)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in arrays)
    return (math.sqrt(squares / freedom) if freedom else math.nan), freedom


def student(freedom: int, confidence: float) -> float:
    """The half-width of Student's interval in standard errors."""
    return float(stdtrit(freedom, (1 + confidence) / 2))


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
