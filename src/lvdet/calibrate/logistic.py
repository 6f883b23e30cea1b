"""Logistic regression of a few features, by SciPy's trust-region Newton method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lvdet.calibrate.maps import Floats

#: Gradient of the mean log loss at which a fit is done.
_TOLERANCE = 1e-10
#: Weight of the pull toward the beginning: next to nothing, but where the data says nothing
#: (equal scores, only right ones) it makes the fit one and finite.
_PULL = 1e-12


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
    which is the constrained optimum where only one would; of two, the better way is taken.
    """
    if not len(start):
        return start  # all are held at 0
    free = _minimum(features, right, start, prior)
    falling = np.flatnonzero(free.weights[:rising] < 0)
    if not len(falling):
        return free.weights
    best: _Optimum | None = None
    for left_out in falling:
        others = np.delete(np.arange(len(start)), left_out)
        within = _within(prior, others, left_out)
        weights = np.zeros(len(start))
        weights[others] = fit_logistic(
            features[others], right, start[others], rising=rising - 1, prior=within
        )
        loss = _Loss(features, right, start, prior)
        found = _Optimum(weights, loss(weights)[0])
        if best is None or found.loss < best.loss:
            best = found
    assert best is not None
    return best.weights


def curvature(features: Floats, right: NDArray[np.bool_], weights: Floats, prior: Prior) -> Floats:
    """[P, P] second derivative of the log loss (the sum over rows) at the weights."""
    loss = _Loss(features, right, weights, prior)
    loss(weights)
    matrix: Floats = loss.curvature(weights) * loss.rows
    return matrix


@dataclass(frozen=True, eq=False)
class _Optimum:
    weights: Floats
    loss: float


class _Loss:
    """The mean log loss and its derivatives."""

    def __init__(
        self, features: Floats, right: NDArray[np.bool_], start: Floats, prior: Prior | None
    ) -> None:
        self.rows = max(len(right), 1)
        self._features = features
        self._of_right = features @ right
        self._chance = np.zeros(0)
        self._start = start
        self._prior = prior

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        odds = weights @ self._features
        # Of the two sides the one that cannot overflow; np.exp is far faster than expit.
        small = np.exp(-np.abs(odds))
        self._chance = np.where(odds >= 0, 1.0, small) / (1 + small)
        total = np.maximum(odds, 0.0).sum() + np.log1p(small).sum() - weights @ self._of_right
        slope = self._features @ self._chance - self._of_right
        if self._prior is not None:
            away = weights - self._prior.mean
            pull = self._prior.precision @ away
            total, slope = total + away @ pull / 2, slope + pull
        away = weights - self._start
        return (
            float(total / self.rows + _PULL * (away @ away) / 2),
            slope / self.rows + _PULL * away,
        )

    def curvature(self, weights: Floats) -> Floats:
        """At the weights of the last call."""
        spread = self._chance * (1 - self._chance)
        matrix = (self._features * spread) @ self._features.T
        if self._prior is not None:
            matrix = matrix + self._prior.precision
        result: Floats = matrix / self.rows + _PULL * np.eye(len(weights))
        return result


def _minimum(
    features: Floats, right: NDArray[np.bool_], start: Floats, prior: Prior | None
) -> _Optimum:
    loss = _Loss(features, right, start, prior)
    found = minimize(
        loss,
        start,
        jac=True,
        hess=loss.curvature,
        method="trust-exact",
        options={"gtol": _TOLERANCE},
    )
    return _Optimum(found.x, float(found.fun))


def _within(prior: Prior | None, others: NDArray[np.int64], left_out: np.int64) -> Prior | None:
    """The prior of the other weights, given that one is 0."""
    if prior is None:
        return None
    precision = prior.precision[np.ix_(others, others)]
    shift = np.linalg.solve(precision, prior.precision[others, left_out] * prior.mean[left_out])
    return Prior(prior.mean[others] + shift, precision)
