"""Logistic regression of a few features, by Newton's method.

Newton's steps do not depend on the units of the features, which differ much: where all scores are
small -log(1 - s) is too, and its weight in the thousands. General optimisers, with one tolerance
and one region of trust for all weights, stop short there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate.maps import Floats

#: Where a step gains no more of the mean log loss than this, it is the last: the one after would
#: gain about the square.
_TOLERANCE = 1e-14
_STEPS = 200
#: A step is halved until it gains this share of what its slope promises.
_ENOUGH = 0.1
#: Directions of less curvature than this, beside that of the features themselves, are flat: the
#: data says nothing there (equal scores, two scores for three weights), and weights stay put.
_FLAT = 1e-14
#: A spread this small beside the mean is rounding: all scores are equal.
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
    is no most likely weight, and the fit ends where no mistake is left that counts.
    """
    units = _Units.of(features, rising)
    weights = _rising_weights(
        units.scaled(features),
        right,
        units.to_scaled(start),
        rising=rising,
        prior=None if prior is None else units.scaled_prior(prior),
    )
    original: Floats = weights @ units.matrix
    return original


@dataclass(frozen=True, eq=False)
class _Units:
    """Features of mean 0, where there is a constant to take the mean up, and of spread 1.

    matrix: [P, P] times the features gives the scaled ones; level: [P] features without spread
    """

    matrix: Floats
    level: NDArray[np.bool_]

    @staticmethod
    def of(features: Floats, rising: int) -> _Units:
        matrix, level = np.eye(len(features)), np.zeros(len(features), dtype=bool)
        count = max(features.shape[1], 1)
        mean = features[:rising].sum(axis=1) / count * (rising < len(features))
        spread = np.sqrt(((features[:rising] - mean[:, None]) ** 2).sum(axis=1) / count)
        level[:rising] = spread <= _LEVEL * np.abs(mean)
        spread[level[:rising]] = 1.0
        matrix[:rising, :rising] = np.diag(1 / spread)
        matrix[:rising, rising:] = -(mean / spread)[:, None]
        return _Units(matrix, level)

    def scaled(self, features: Floats) -> Floats:
        result: Floats = self.matrix @ features
        result[self.level] = 0.0
        return result

    def to_scaled(self, weights: Floats) -> Floats:
        """The weights of the scaled features that give the same odds."""
        return np.linalg.solve(self.matrix.T, weights).astype(np.float64)

    def scaled_prior(self, prior: Prior) -> Prior:
        return Prior(self.to_scaled(prior.mean), self.matrix @ prior.precision @ self.matrix.T)


def _rising_weights(
    features: Floats,
    right: NDArray[np.bool_],
    start: Floats,
    *,
    rising: int,
    prior: Prior | None,
) -> Floats:
    if not len(start):
        return start  # all are held at 0
    free = _minimum(features, right, start, rising, prior)
    falling = np.flatnonzero(free.weights[:rising] < 0)
    if not len(falling):
        return free.weights
    best: _Optimum | None = None
    for left_out in falling:
        others = np.delete(np.arange(len(start)), left_out)
        within = _within(prior, others, left_out)
        weights = np.zeros(len(start))
        weights[others] = _rising_weights(
            features[others], right, start[others], rising=rising - 1, prior=within
        )
        loss = _Loss(features, right, prior)
        found = _Optimum(weights, loss(weights)[0])
        if best is None or found.loss < best.loss:
            best = found
    assert best is not None
    return best.weights


def curvature(features: Floats, right: NDArray[np.bool_], weights: Floats, prior: Prior) -> Floats:
    """[P, P] second derivative of the log loss (the sum over rows) at the weights."""
    loss = _Loss(features, right, prior)
    loss(weights)
    matrix: Floats = loss.curvature() * loss.rows
    return matrix


@dataclass(frozen=True, eq=False)
class _Optimum:
    weights: Floats
    loss: float


class _Loss:
    """The mean log loss and its derivatives."""

    def __init__(self, features: Floats, right: NDArray[np.bool_], prior: Prior | None) -> None:
        self.rows = max(len(right), 1)
        # Toward the wrong answer: sums of what is lost keep their digits where odds are huge.
        self._features = np.where(right, -features, features)
        self._spread = np.zeros(0)
        self._prior = prior

    def __call__(self, weights: Floats) -> tuple[float, Floats]:
        odds = weights @ self._features
        # Of the two sides the one that cannot overflow; np.exp is far faster than expit.
        small = np.exp(-np.abs(odds))
        total = float(np.maximum(odds, 0.0).sum() + np.log1p(small).sum())
        part = 1 / (1 + small)
        slope = self._features @ (np.where(odds >= 0, 1.0, small) * part)
        self._spread = small * part * part
        if self._prior is not None:
            away = weights - self._prior.mean
            pull = self._prior.precision @ away
            total, slope = total + float(away @ pull) / 2, slope + pull
        return total / self.rows, slope / self.rows

    def curvature(self) -> Floats:
        """At the weights of the last call."""
        matrix = (self._features * self._spread) @ self._features.T
        if self._prior is not None:
            matrix = matrix + self._prior.precision
        result: Floats = matrix / self.rows
        return result


def _minimum(
    features: Floats,
    right: NDArray[np.bool_],
    start: Floats,
    rising: int,
    prior: Prior | None,
) -> _Optimum:
    loss = _Loss(features, right, prior)
    # Far from the labels there is hardly a curvature to step by; the share of right ones never is.
    share_alone = _share_alone(features, right, start, rising)
    weights = min(start, share_alone, key=lambda one: loss(one)[0])
    value, slope = loss(weights)
    for _ in range(_STEPS):
        step = _newton_step(loss.curvature(), slope)
        gain = -float(slope @ step)
        if gain <= _TOLERANCE:
            return _Optimum(weights + step, value)
        share = 1.0
        lower, slope = loss(weights + step)
        while lower > value - _ENOUGH * share * gain:
            share /= 2
            if share * gain <= _TOLERANCE:  # rounding alone is left
                return _Optimum(weights, value)
            lower, slope = loss(weights + share * step)
        weights, value = weights + share * step, lower
    return _Optimum(weights, value)


def _share_alone(features: Floats, right: NDArray[np.bool_], start: Floats, rising: int) -> Floats:
    """[P] weights of 0 but for the constant, which says how many are right; those of features
    without spread stay as they are."""
    hits = np.count_nonzero(right) + 0.5
    weights = np.where(features.any(axis=1), 0.0, start)
    weights[rising:] = np.log(hits / (len(right) + 1 - hits))
    return weights


def _newton_step(curvature: Floats, slope: Floats) -> Floats:
    """[P] to the bottom of the parabola, but not along its flat directions."""
    unit = np.sqrt(np.diag(curvature))
    unit[unit == 0] = 1.0
    height, along = np.linalg.eigh(curvature / np.outer(unit, unit))
    steep = height > _FLAT
    along = along[:, steep]
    step: Floats = -(along @ ((along.T @ (slope / unit)) / height[steep])) / unit
    return step


def _within(prior: Prior | None, others: NDArray[np.int64], left_out: np.int64) -> Prior | None:
    """The prior of the other weights, given that one is 0."""
    if prior is None:
        return None
    precision = prior.precision[np.ix_(others, others)]
    shift = np.linalg.solve(precision, prior.precision[others, left_out] * prior.mean[left_out])
    return Prior(prior.mean[others] + shift, precision)
