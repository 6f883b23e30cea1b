"""How far two detectors are apart, and how far that may be chance.

An interval of a metric lies between percentiles of the differences on drawn sets. That of a single
class is the difference on the images there are, more or less so many standard errors: many classes
are tested at once, far out where percentiles of a thousand sets say nothing. docs/comparing.md has
how often intervals are right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.metrics.summary import defined


@dataclass(frozen=True)
class Difference:
    """A number of the baseline and of another detector, as fractions, NaN where undefined.

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
        """The other detector's less the baseline's."""
        return self.value - self.baseline

    @property
    def holds(self) -> bool:
        """Whether 0 lies outside of the interval."""
        return self.low > 0 or self.high < 0

    @property
    def p_value(self) -> float:
        """The chance of a difference so far from 0 where there is none; NaN where that cannot be
        said."""
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
    """The difference more or less so many standard errors; undefined where there is none."""
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return Difference(baseline, value, error, value - baseline - reach, value - baseline + reach)


def by_percentiles(
    baseline: float, value: float, drawn: NDArray[np.float64], confidence: float
) -> Difference:
    """The difference between percentiles of those on drawn sets ([R], NaN where a set does not
    define it); undefined where fewer than two sets do."""
    known = drawn[~np.isnan(drawn)]
    if len(known) < 2 or math.isnan(value - baseline):
        return Difference(baseline, value, math.nan, math.nan, math.nan)
    tail = (1 - confidence) / 2
    low, high = np.quantile(known, [tail, 1 - tail]).tolist()
    return Difference(baseline, value, float(known.std(ddof=1)), low, high)


class Spread:
    """The standard errors of many differences, from drawn sets that come in parts.

    centre: what the drawn differences are near, of any shape; NaN where they are undefined
    """

    def __init__(self, centre: NDArray[np.float64]) -> None:
        self._centre = centre
        self._count = np.zeros(centre.shape, dtype=np.int64)
        self._sum = np.zeros(centre.shape)
        self._squares = np.zeros(centre.shape)

    def add(self, drawn: NDArray[np.float64]) -> None:
        """Takes more drawn differences, [sets, …]; NaN where a set does not define one."""
        away = drawn - self._centre
        known = ~np.isnan(away)
        away = np.where(known, away, 0.0)
        self._count += known.sum(axis=0)
        self._sum += away.sum(axis=0)
        self._squares += (away * away).sum(axis=0)

    def errors(self) -> NDArray[np.float64]:
        """The standard error of each; NaN where fewer than two sets define it."""
        many = np.maximum(self._count, 2)
        variance = np.maximum(self._squares - self._sum**2 / many, 0.0) / (many - 1)
        return np.where(self._count >= 2, np.sqrt(variance), np.nan)


def discoveries(p_values: Sequence[float], rate: float) -> list[bool]:
    """Which of many differences hold together, by Benjamini and Hochberg (1995): among those that
    are said to, at most so large a share is chance, in expectation. NaN is never one of them."""
    order = sorted(
        (place for place, p in enumerate(p_values) if not math.isnan(p)), key=lambda i: p_values[i]
    )
    last = 0
    for rank, place in enumerate(order, start=1):
        if p_values[place] <= rank / len(order) * rate:
            last = rank
    held = set(order[:last])
    return [place in held for place in range(len(p_values))]
