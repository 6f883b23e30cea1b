"""Beta calibration of every class, shrunk toward its frequency group's and the whole's.

    log odds that a detection of score s is right:  w_k . x,  x = (log s, -log(1 - s), 1)
    a class's weights around its frequency group's:  w_k ~ N(m_g, S)
    a group's weights around everybody's:            m_g ~ N(m, T)

A class with much evidence keeps what it says; one with little says what its group does. How far
classes and groups differ (S, T, m) is learned from the data by empirical Bayes: expectation
maximisation, in which the likelihood of each class is a normal one with the value, slope and
curvature that it has at the class's most likely weights (Laplace's approximation). Nothing is left
to be chosen. docs/calibration.md tells the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate.beta import START, features
from lvdet.calibrate.logistic import Labelled, Prior, fit_logistic, likelihoods
from lvdet.calibrate.maps import Floats, LogOdds
from lvdet.calibrate.samples import Samples
from lvdet.read.files import Progress

#: The variances at the beginning; they stay in the sum as those of one more class (or group), so
#: that no variance vanishes.
_FIRST = 0.25
#: Rounds of approximation, and of maximisation in each; fewer where nothing changes any more.
_ROUNDS, _STEPS = 20, 100
_STILL = 1e-3


def fit_hierarchical(
    samples: Samples, *, threads: int | None = None, progress: Progress | None = None
) -> list[LogOdds]:
    """The map of every class, also of those without a detection."""
    group = samples.categories.group_numbers()
    if not len(group):
        return []
    (whole,) = fit_logistic(
        Labelled(samples.score, samples.right, np.array([0, len(samples)]), features, 2),
        np.array([START]),
    )
    levels = Levels.around(whole, int(group.max()) + 1)
    data = Labelled(samples.score, samples.right, samples.offsets, features, 2)
    weights = np.tile(whole, (len(group), 1))
    for _ in range(_ROUNDS):
        weights = fit_logistic(
            data,
            weights,
            rising=False,
            prior=levels.prior(group),
            threads=threads,
            progress=progress,
        )
        slope, curvature = likelihoods(data, weights, threads=threads)
        shift = np.einsum("kij,kj->ki", curvature, weights) - slope
        before, levels = levels, learned(levels, Evidence(curvature, shift, group))
        if levels.distance(before) < _STILL:
            break
    weights = fit_logistic(data, weights, prior=levels.prior(group), threads=threads)
    return [LogOdds(*row) for row in weights.tolist()]


@dataclass(frozen=True, eq=False)
class Levels:
    """What is common to classes.

    mean:   [G, P], of the classes of each of G groups
    spread: [P, P], covariance of classes around the means of their groups
    top_mean, top_spread: [P] and [P, P], of the groups' means
    """

    mean: Floats
    spread: Floats
    top_mean: Floats
    top_spread: Floats

    @staticmethod
    def around(weights: Floats, groups: int) -> Levels:
        """The beginning: all groups alike."""
        spread = np.eye(len(weights)) * _FIRST
        return Levels(np.tile(weights, (groups, 1)), spread, weights, spread)

    def distance(self, other: Levels) -> float:
        """How far means and spread are from others, at most."""
        return float(
            max(np.abs(self.mean - other.mean).max(), np.abs(self.spread - other.spread).max())
        )

    def prior(self, group: NDArray[np.int32]) -> Prior:
        """What is thought of classes of these groups before they are seen."""
        precision = np.linalg.inv(self.spread)
        return Prior(self.mean[group], np.tile(precision, (len(group), 1, 1)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What C classes say of their weights, as normal likelihoods.

    precision: [C, P, P]; shift: [C, P], precision times mean; group: [C]
    """

    precision: Floats
    shift: Floats
    group: NDArray[np.int32]


def learned(levels: Levels, evidence: Evidence) -> Levels:
    """The levels under which the evidence is most likely, by expectation maximisation."""
    for _ in range(_STEPS):
        before, levels = levels, _maximised(levels, evidence)
        if levels.distance(before) < _STILL:
            break
    return levels


def _maximised(levels: Levels, evidence: Evidence) -> Levels:
    """One step: what is expected of classes and groups, and the levels that fit it best."""
    one = np.eye(levels.mean.shape[1])
    first = one * _FIRST
    within, above = np.linalg.inv(levels.spread), np.linalg.inv(levels.top_spread)
    # Given its group's mean m, a class's weights are normal around own + pull m.
    of_class = np.linalg.inv(evidence.precision + within)
    own = np.einsum("kij,kj->ki", of_class, evidence.shift)
    pull = of_class @ within
    mean, of_group = np.empty_like(levels.mean), []
    for group in range(len(mean)):
        members = evidence.group == group
        told = (within - within @ pull[members]).sum(axis=0)
        of_group.append(np.linalg.inv(told + above))
        mean[group] = of_group[group] @ (
            within @ own[members].sum(axis=0) + above @ levels.top_mean
        )
    unsure = np.array(of_group)
    left = pull - one
    away = own + np.einsum("kij,kj->ki", left, mean[evidence.group])
    more = left @ unsure[evidence.group] @ left.transpose(0, 2, 1)
    spread = (away.T @ away + (of_class + more).sum(axis=0) + first) / (len(away) + 1)
    top = mean.mean(axis=0)
    apart = mean - top
    return Levels(
        mean, spread, top, (apart.T @ apart + unsure.sum(axis=0) + first) / (len(mean) + 1)
    )
