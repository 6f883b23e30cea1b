"""Differences between two detectors, and how much of them may be chance.

An interval is the difference on the actual images, plus or minus a number of standard errors. The
standard error is the root mean square distance of the bootstrap samples' differences from that one.
So it covers their spread and also their bias, which appears when samples lack classes with few
images. docs/comparing.md lists the alternatives that were tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.summary import defined


@dataclass(frozen=True)
class Difference:
    """A metric of the baseline and of another detector, as fractions, NaN where undefined.

    error: standard error of their difference
    low, high: the interval around it
    """

    baseline: float
    value: float
    error: float
    low: float
    high: float

    @property
    def delta(self) -> float:
        """The other detector's value minus the baseline's."""
        return self.value - self.baseline

    @property
    def holds(self) -> bool:
        """Whether 0 lies outside the interval."""
        return self.low > 0 or self.high < 0

    @property
    def p_value(self) -> float:
        """The probability of a difference this far from 0 by chance alone; NaN if it cannot be
        computed."""
        if math.isnan(self.error):
            return math.nan
        if self.error == 0:
            return 1.0 if self.delta == 0 else 0.0
        return math.erfc(abs(self.delta) / self.error / math.sqrt(2))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        numbers = {
            "baseline": self.baseline,
            "value": self.value,
            "delta": self.delta,
            "error": self.error,
            "low": self.low,
            "high": self.high,
        }
        return defined(numbers) | {"holds": None if math.isnan(self.low) else self.holds}


def by_error(baseline: float, value: float, error: float, confidence: float) -> Difference:
    """The difference plus or minus a multiple of its standard error; undefined if there is none."""
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return Difference(baseline, value, error, value - baseline - reach, value - baseline + reach)


class Spread:
    """The standard errors of many differences, from bootstrap samples that arrive in batches.

    observed: the differences on the set itself, of any shape; NaN where undefined
    """

    def __init__(self, observed: NDArray[np.float64]) -> None:
        self._observed = observed
        self._count = np.zeros(observed.shape, dtype=np.int64)
        self._squares = np.zeros(observed.shape)

    def add(self, drawn: NDArray[np.float64]) -> None:
        """Adds bootstrap differences, [samples, …]; NaN where a sample does not define one."""
        away = drawn - self._observed
        known = ~np.isnan(away)
        self._count += known.sum(axis=0)
        self._squares += np.where(known, away * away, 0.0).sum(axis=0)

    def errors(self) -> NDArray[np.float64]:
        """The standard error of each difference; NaN if fewer than two samples define it."""
        error = np.sqrt(self._squares / np.maximum(self._count, 1))
        return np.where(self._count >= 2, error, np.nan)


def discoveries(p_values: Sequence[float], rate: float) -> list[bool]:
    """Which of many differences are significant together, by Benjamini and Hochberg (1995): among
    those selected, the expected share of chance findings is at most the given rate. NaN is never
    selected."""
    order = sorted(
        (place for place, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i]
    )
    last = 0
    for rank, place in enumerate(order, start=1):
        if p_values[place] <= rank / len(order) * rate:
            last = rank
    held = set(order[:last])
    return [place in held for place in range(len(p_values))]
