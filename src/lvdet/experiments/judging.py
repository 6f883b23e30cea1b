"""Verdicts on claims, by a rule fixed before the runs.

A claim holds where its effect lies on the right side of its bound, beyond the 95 % t-interval, and
the 95 % interval of the image bootstrap says the same if there is one. It fails where both lie on
the wrong side. Otherwise, and always if a config has a single seed, it is undecided.

The t-interval covers the mean over seeds, which are independent: the standard deviation is pooled
over the configs of the experiment, each with one degree of freedom less than its seeds. The
bootstrap interval is computed as in `lvdet compare`, for the mean over seeds on the same samples of
images.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.comparison.run_spread import pooled_deviation, student
from lvdet.experiments.claims import Claim
from lvdet.experiments.paper_item import experiment
from lvdet.experiments.result_files import ResultSet

HOLDS, FAILS, UNDECIDED, MISSING = "holds", "fails", "undecided", "not run"
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """An interval, as fractions."""

    low: float
    high: float

    @classmethod
    def around(cls, value: float, reach: float) -> Interval:
        return cls(value - reach, value + reach)


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim; effects are fractions, None if undefined.

    seeds:     the number of seeds of each config
    by_seeds:  the t-interval
    by_images: the bootstrap interval, if there are samples
    deviation: the pooled standard deviation over seeds, with its degrees of freedom
    """

    claim: Claim
    outcome: str
    seeds: dict[str, int]
    effect: float | None = None
    by_seeds: Interval | None = None
    by_images: Interval | None = None
    deviation: float | None = None
    freedom: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        pairs = {"t_interval": self.by_seeds, "bootstrap_interval": self.by_images}
        return {
            "claim": self.claim.name,
            "statement": self.claim.statement,
            "verdict": self.outcome,
            "effect": self.effect,
            **{key: one and [one.low, one.high] for key, one in pairs.items()},
            "standard_deviation": self.deviation,
            "degrees_of_freedom": self.freedom,
            "seeds": self.seeds,
        }


def judge(claim: Claim, results: ResultSet) -> Verdict:
    """The verdict on a claim, from results of one scale."""
    values = {name: _combined(claim, results, name) for name in claim.configs}
    seeds = {name: len(found) for name, found in values.items()}
    if not all(seeds.values()):
        return Verdict(claim, MISSING, seeds)
    effect = sum(w * float(np.mean(values[name])) for name, w in claim.configs.items())
    rows = experiment(claim.experiment)
    others = {config for config, _ in rows.wanted()} - {*values}
    pool = [*values.values(), *(_combined(claim, results, name) for name in sorted(others))]
    deviation, freedom = pooled_deviation(pool)
    if min(seeds.values()) < 2:
        return Verdict(claim, UNDECIDED, seeds, effect)
    spread = math.sqrt(sum(w * w / seeds[name] for name, w in claim.configs.items()))
    reach = student(freedom, LEVEL) * deviation * spread
    by_seeds = Interval.around(effect, reach)
    by_images = _bootstrap(claim, results, effect)
    outcome = decide(claim, by_seeds)
    if by_images is not None and decide(claim, by_images) != outcome:
        outcome = UNDECIDED
    return Verdict(claim, outcome, seeds, effect, by_seeds, by_images, deviation, freedom)


def decide(claim: Claim, interval: Interval) -> str:
    """The verdict that follows from an interval."""
    if not claim.sign:
        margin = claim.margin / 100
        if interval.low > -margin and interval.high < margin:
            return HOLDS
        return FAILS if interval.low >= margin or interval.high <= -margin else UNDECIDED
    bound = claim.bound / 100
    above, below = interval.low > bound, interval.high < bound
    if claim.sign < 0:
        above, below = below, above
    return HOLDS if above else FAILS if below else UNDECIDED


def _combined(claim: Claim, results: ResultSet, name: str) -> list[float]:
    """The claim's combination of metrics, for each seed that has all of them."""
    found = []
    for seed in results.seeds(name):
        values = [results.value(name, seed, at, metric) for at, metric, _ in claim.terms]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            weights = [weight for _, _, weight in claim.terms]
            found.append(sum(w * v for w, v in zip(weights, known, strict=True)))
    return found


def _bootstrap(claim: Claim, results: ResultSet, effect: float) -> Interval | None:
    """The interval over samples of images; None if a run has no samples, or different ones."""
    total: NDArray[np.float64] | float = 0.0
    for name, weight in claim.configs.items():
        drawn = [_samples(claim, results, name, seed) for seed in results.seeds(name)]
        known = [one for one in drawn if one is not None]
        if len(known) < len(drawn):
            return None
        total = total + weight * np.mean(known, axis=0)
    away = np.asarray(total) - effect
    away = away[~np.isnan(away)]
    if len(away) < 2:
        return None
    error = math.sqrt(float(np.mean(away * away)))
    return Interval.around(effect, NormalDist().inv_cdf((1 + LEVEL) / 2) * error)


def _samples(claim: Claim, results: ResultSet, name: str, seed: int) -> NDArray[np.float64] | None:
    """[R] the claim's combination of metrics on each sample."""
    drawn = results.result(name, seed)["resamples"]
    if not all(metric in drawn.get(at, {}) for at, metric, _ in claim.terms):
        return None
    columns = [w * np.array(drawn[at][m], dtype=np.float64) for at, m, w in claim.terms]
    total: NDArray[np.float64] = np.sum(columns, axis=0)
    return total
