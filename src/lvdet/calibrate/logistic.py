"""Logistic regression of a few features, by SciPy's trust-region Newton method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lvdet.calibrate.maps import Floats

#: Slope of the mean log loss, in scaled features, at which a fit is done.
_TOLERANCE = 1e-9
#: Weight of the pull toward the beginning: next to nothing, but where the data says nothing
#: (equal scores, only right ones) it makes the fit one and finite.
_PULL = 1e-12
#: A spread of features this small beside their size is rounding.
_LEVEL = 1e-12


@dataclass(frozen=True, eq=False)
class Prior:
    """A normal distribution of the weights: mean [P], and the inverse [P, P] of its covariance."""

    mean: Floats
    precision: Floats


def fit_logistic(
    features: Floats,
    right: NDArray[np.bool_],
    start: Floats,
    *,
    rising: int,
    prior: Prior | None = None,
) -> Floats:
    """[P] weights of the features ([P, N]) that make the labels ([N]) most likely.

    The first `rising` weights are held at 0 or more: the one that would fall below is left out,
    which is the constrained optimum where only one would; of two, the better way is taken. A
    feature after those is the constant 1. Where labels can be told apart without a mistake there
    is no most likely weight, and the fit ends where hardly a mistake is left.
    """
    if not len(start):
        return start  # all are held at 0
    free = _minimum(features, right, start, rising, prior)
    falling = np.flatnonzero(free[:rising] < 0)
    if not len(falling):
        return free
    ways = []
    for left_out in falling:
        others = np.delete(np.arange(len(start)), left_out)
        weights = np.zeros(len(start))
        weights[others] = fit_logistic(
            features[others],
            right,
            start[others],
            rising=rising - 1,
            prior=_given_zero(prior, others, left_out),
        )
        ways.append(weights)
    loss = _Loss(features, right, start, prior)
    return min(ways, key=lambda weights: loss(weights)[0])


def likelihood(
    features: Floats, right: NDArray[np.bool_], weights: Floats
) -> tuple[Floats, Floats]:
    """[P] slope and [P, P] curvature of the log loss, summed over the rows, at the weights."""
    loss = _Loss(features, right, weights, None)
    _, slope = loss(weights)
    return slope * len(right), loss.curvature(weights) * len(right)


class _Loss:
    """The mean log loss and its derivatives."""

    def __init__(
        self, features: Floats, right: NDArray[np.bool_], start: Floats, prior: Prior | None
    ) -> None:
        self._rows = max(len(right), 1)
        # Toward the wrong answer: sums of what is lost keep their digits where odds are huge.
        self._features = np.where(right, -features, features)
        self._spread = np.zeros(0)
        self._start = start
        self._prior = prior

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        odds = weights @ self._features
        # Of the two sides the one that cannot overflow; np.exp is far faster than expit.
        small = np.exp(-np.abs(odds))
        part = 1 / (1 + small)
        total = float(np.maximum(odds, 0.0).sum() + np.log1p(small).sum())
        slope = self._features @ (np.where(odds >= 0, 1.0, small) * part)
        self._spread = small * part * part
        if self._prior is not None:
            away = weights - self._prior.mean
            pull = self._prior.precision @ away
            total, slope = total + float(away @ pull) / 2, slope + pull
        away = weights - self._start
        return (
            total / self._rows + _PULL * float(away @ away) / 2,
            slope / self._rows + _PULL * away,
        )

    def curvature(self, weights: Floats) -> Floats:
        """At the weights of the last call."""
        matrix = (self._features * self._spread) @ self._features.T
        if self._prior is not None:
            matrix = matrix + self._prior.precision
        result: Floats = matrix / self._rows + _PULL * np.eye(len(weights))
        return result


def _minimum(
    features: Floats, right: NDArray[np.bool_], start: Floats, rising: int, prior: Prior | None
) -> Floats:
    """The most likely weights, of any sign.

    The optimiser has one tolerance and one radius of trust for all weights, so it is given features
    of one size: where all scores are small, -log(1 - s) is too, and its weight in the thousands.
    """
    scale = _scale(features, rising)
    back = np.linalg.inv(scale)
    begin = start @ back
    scaled_prior = prior and Prior(prior.mean @ back, scale @ prior.precision @ scale.T)
    loss = _Loss(scale @ features, right, begin, scaled_prior)
    # Far from the labels there is hardly a slope to go by; the share of right ones never is.
    level = np.zeros(len(start))
    level[rising:] = np.log((right.sum() + 0.5) / ((~right).sum() + 0.5))
    found = minimize(
        loss,
        min(begin, level, key=lambda weights: loss(weights)[0]),
        jac=True,
        hess=loss.curvature,
        method="dogleg",
        options={"gtol": _TOLERANCE},
    )
    weights: Floats = found.x @ scale
    return weights


def _scale(features: Floats, rising: int) -> Floats:
    """[P, P] what makes features of mean 0, where there is a constant to take that up, and of
    spread 1; those without spread stay."""
    varied = features[:rising]
    rows = max(features.shape[1], 1)
    mean = varied.sum(axis=1) / rows * (rising < len(features))
    spread = np.sqrt(((varied - mean[:, None]) ** 2).sum(axis=1) / rows)
    level = spread <= _LEVEL * np.abs(varied).max(axis=1, initial=0.0)
    mean[level], spread[level] = 0.0, 1.0
    matrix = np.eye(len(features))
    matrix[:rising, :rising] = np.diag(1 / spread)
    matrix[:rising, rising:] = -(mean / spread)[:, None]
    return matrix


def _given_zero(prior: Prior | None, others: NDArray[np.int64], left_out: np.int64) -> Prior | None:
    """The prior of the other weights, given that one is 0."""
    if prior is None:
        return None
    precision = prior.precision[np.ix_(others, others)]
    shift = np.linalg.solve(precision, prior.precision[others, left_out] * prior.mean[left_out])
    return Prior(prior.mean[others] + shift, precision)
