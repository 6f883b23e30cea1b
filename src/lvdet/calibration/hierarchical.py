"""Beta calibration of every class, shrunk toward its frequency group's and the whole's.

    log odds that a detection of score s is right:  w_k . x,  x = (log s, -log(1 - s), 1)
    a class's weights around its frequency group's:  w_k ~ N(m_g, S)
    a group's weights around everybody's:            m_g ~ N(m, T)

A class with much evidence follows it; one with little evidence follows its group. How far classes
and groups differ (S, T, m) is learned from the data by empirical Bayes: expectation maximisation,
in which the log loss of each class is a parabola, with the slope and curvature that it has at the
class's most probable weights (Laplace's approximation). There are no hyperparameters. The bottom of
parabolas may lie anywhere where hardly a label is in doubt: a step of the groups' means that makes
them less probable is taken back, and a shorter one tried. See docs/calibration.md for details.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.beta import START
from lvdet.calibration.labelled_scores import Samples
from lvdet.calibration.logistic import Lines, Prior, fit_logistic
from lvdet.calibration.maps import Floats, LogOdds
from lvdet.files.progress import Update

#: Variances of slopes and offset at the beginning. They stay in the sums as those of one more
#: class, at the mean of its group, and of one more group, whose scores are chances already: so that
#: no variance vanishes, and no mean runs away where labels say nothing against it.
_FIRST = np.diag([0.04, 0.04, 0.25])
#: Rounds of approximation, and of maximisation in each; fewer where nothing changes any more.
_ROUNDS, _STEPS = 50, 100
_STILL = 1e-3
#: How far levels may move before classes are computed again: an approximation holds nearby only.
_FAR = 0.5
#: How far a group's mean may go in a round at first. It is a fourth of the way that was too far
#: afterwards, and twice as far where that is in the way.
_REACH = 2.0
#: What sums of log losses may be off by, of themselves.
_ROUNDING = 1e-9
#: Variances further apart than this are beyond what float64 can invert.
_APART = 1e12


def fit_hierarchical(samples: Samples, *, update: Update | None = None) -> list[LogOdds]:
    """Fits the map of every class, including classes without detections."""
    group = samples.categories.group_numbers()
    if not len(group):
        return []
    whole = _of_all(samples)
    levels = Levels.around(whole, int(group.max()) + 1)
    data = Lines.of(samples.score, samples.right, samples.offsets, varied=2, constant=True)

    def seen(levels: Levels, weights: Floats) -> _Seen:
        """The most likely weights of the classes under given levels, searched for from
        `weights`."""
        prior = levels.prior(group)
        found = fit_logistic(data, weights, rising=False, prior=prior, update=update)
        shift = np.einsum("kij,kj->ki", found.curvature, found.weights) - found.slope
        return _Seen(levels, found.weights, found.loss, Evidence(found.curvature, shift, group))

    best = seen(levels, np.tile(whole, (len(group), 1)))
    reach = np.full(len(levels.mean), _REACH)
    for _ in range(_ROUNDS):
        levels = learned(best.levels, best.evidence, reach)
        if levels.distance(best.levels) < _STILL:
            break
        tried = seen(levels, best.weights)
        way = np.abs(levels.mean - best.levels.mean).max(axis=1)
        before = best.surprise(levels)
        worse = tried.surprise(levels) > before + _ROUNDING * np.abs(before)
        if worse.any():
            reach = np.where(worse, way / 4, reach)
            levels = best.levels
        else:
            reach = np.where(way > reach / 2, 2 * reach, reach)
            best = tried
    found = fit_logistic(data, best.weights, prior=levels.prior(group), update=update)
    return [LogOdds(*row) for row in found.weights.tolist()]


def _of_all(samples: Samples) -> Floats:
    """[P] the most likely weights of all classes together."""
    offsets = np.array([0, len(samples)])
    data = Lines.of(samples.score, samples.right, offsets, varied=2, constant=True)
    start = np.array([START])
    # If the labels are perfectly separable, the fit would not terminate.
    prior = Prior(start, np.eye(len(START))[None])
    weights: Floats = fit_logistic(data, start, prior=prior).weights[0]
    return weights


@dataclass(frozen=True, eq=False)
class Levels:
    """What classes have in common.

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
        """The starting point: all groups alike."""
        return Levels(np.tile(weights, (groups, 1)), _FIRST, weights, _FIRST)

    def distance(self, other: Levels) -> float:
        """The largest difference from other levels in means and spread."""
        return float(
            max(np.abs(self.mean - other.mean).max(), np.abs(self.spread - other.spread).max())
        )

    @property
    def sound(self) -> bool:
        """Whether float64 can continue with these numbers."""
        if not (np.isfinite(self.mean).all() and np.isfinite(self.top_mean).all()):
            return False
        for spread in (self.spread, self.top_spread):
            if not np.isfinite(spread).all():
                return False
            variances = np.linalg.eigvalsh(spread)
            if not variances[-1] < _APART * variances[0]:
                return False
        return True

    def prior(self, group: NDArray[np.int32]) -> Prior:
        """The prior on the weights of classes in these groups."""
        precision = np.linalg.inv(self.spread)
        return Prior(self.mean[group], np.tile(precision, (len(group), 1, 1)))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What C classes say about their weights, as normal likelihoods.

    precision: [C, P, P]; shift: [C, P], precision times mean; group: [C]
    """

    precision: Floats
    shift: Floats
    group: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class _Seen:
    """The result under given levels: [C, P] the most probable weights of the classes, [C] their log
    losses, and what this says about other weights."""

    levels: Levels
    weights: Floats
    loss: Floats
    evidence: Evidence

    def surprise(self, levels: Levels) -> Floats:
        """[G] how improbable each group's mean, its classes' weights and their labels are together,
        given the other levels: the negative log-probability, up to a constant."""
        group = self.evidence.group
        away = self.weights - self.levels.mean[group]
        above = self.levels.mean - levels.top_mean
        of_class = self.loss + _squares(away, levels.spread) / 2
        return (
            np.bincount(group, of_class, minlength=len(above))
            + _squares(above, levels.top_spread) / 2
        )


def learned(levels: Levels, evidence: Evidence, reach: Floats | float = np.inf) -> Levels:
    """Levels under which the evidence is more likely, by expectation maximisation: the most likely
    ones, or as far towards them as the evidence can be trusted.

    reach: [G] how far the means of groups may go. Where one would go further, all go as far as
        they may and the rest stays: it is learned around means that are not on their way.
    """
    begin = levels
    for _ in range(_STEPS):
        before = levels
        try:
            levels = _maximised(levels, evidence)
        except np.linalg.LinAlgError:  # evidence of too different sizes for float64's digits
            return before
        if not levels.sound:
            return before
        way = levels.mean - begin.mean
        length = np.abs(way).max(axis=1)
        if (length > reach).any():
            share = np.minimum(1.0, reach / np.maximum(length, _STILL))
            return replace(before, mean=begin.mean + share[:, None] * way)
        if levels.distance(before) < _STILL or levels.distance(begin) > _FAR:
            break
    return levels


def _maximised(levels: Levels, evidence: Evidence) -> Levels:
    """One EM step: the expectations of classes and groups, and the levels that fit them best."""
    one = np.eye(levels.mean.shape[1])
    within, above = np.linalg.inv(levels.spread), np.linalg.inv(levels.top_spread)
    # Given its group's mean m, a class's weights are normal around own + pull m.
    of_class = np.linalg.inv(evidence.precision + within)
    own = np.einsum("kij,kj->ki", of_class, evidence.shift)
    pull = of_class @ within
    mean, of_group = np.empty_like(levels.mean), []
    for group in range(len(mean)):
        members = evidence.group == group
        information = (within - within @ pull[members]).sum(axis=0)
        of_group.append(np.linalg.inv(information + above))
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


def _squares(vectors: Floats, spread: Floats) -> Floats:
    """[n] squared lengths of vectors [n, P], under a covariance."""
    squares: Floats = (vectors * np.linalg.solve(spread, vectors.T).T).sum(axis=1)
    return squares
