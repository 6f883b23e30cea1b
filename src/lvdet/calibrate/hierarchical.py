"""Beta calibration of every class, shrunk toward its frequency group's and the whole's.

    log odds that a detection of score s is right:  w_k . x,  x = (log s, -log(1 - s), 1)
    a class's weights around its frequency group's:  w_k ~ N(m_g, S)
    a group's weights around everybody's:            m_g ~ N(m, T)

A class with much evidence keeps what it says; one with little says what its group does. How far
classes and groups differ (S, T, m) is learned from the data by empirical Bayes: expectation
maximisation, in which the log loss of each class is a parabola, with the slope and curvature that
it has at the class's most probable weights (Laplace's approximation). Nothing is left to be chosen.
docs/calibration.md tells the rest.
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

#: Variances of slopes and offset at the beginning. They stay in the sums as those of one more
#: class, at the mean of its group, and of one more group, whose scores are chances already: so that
#: no variance vanishes, and no mean runs away where labels say nothing against it.
_FIRST = np.diag([0.04, 0.04, 0.25])
#: Rounds of approximation, and of maximisation in each; fewer where nothing changes any more.
_ROUNDS, _STEPS = 50, 100
_STILL = 1e-3
#: How far levels may move before classes are looked at again: an approximation holds nearby only.
_FAR = 0.5


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
        # Where all labels can be told apart there would be no end of it.
        prior=Prior(np.array([START]), np.eye(len(START))[None]),
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
    weights = fit_logistic(
        data, weights, prior=levels.prior(group), threads=threads, progress=progress
    )
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
        return Levels(np.tile(weights, (groups, 1)), _FIRST, weights, _FIRST)

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
    """Levels under which the evidence is more likely, by expectation maximisation: the most likely
    ones, or as far on the way to them as the evidence can be trusted."""
    begin = levels
    for _ in range(_STEPS):
        before, levels = levels, _maximised(levels, evidence)
        if levels.distance(before) < _STILL or levels.distance(begin) > _FAR:
            break
    return levels


def _maximised(levels: Levels, evidence: Evidence) -> Levels:
    """One step: what is expected of classes and groups, and the levels that fit it best."""
    one = np.eye(levels.mean.shape[1])
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
    spread = (away.T @ away + (of_class + more).sum(axis=0) + _FIRST) / (len(away) + 1)
    # The group that is calibrated as it is has no class of its own to say otherwise.
    groups = np.vstack([mean, START])
    top = groups.mean(axis=0)
    apart = groups - top
    top_spread = (apart.T @ apart + unsure.sum(axis=0) + _FIRST) / len(groups)
    return Levels(mean, (spread + spread.T) / 2, top, (top_spread + top_spread.T) / 2)
