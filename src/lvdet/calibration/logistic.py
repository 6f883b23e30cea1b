"""Logistic regression of a few features, for many classes at once.

Classes have nothing to do with each other, so the sum of their losses is least where each of them
is. SciPy's dogleg method minimises that sum for some classes at a time: what it costs to call it is
paid once for all of them. The work on their rows is done natively.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from lvdet import _native
from lvdet.calibration.maps import Floats, LogOdds
from lvdet.files.progress import Update
from lvdet.threads import thread_count

#: Slope of the log losses, in scaled features and by evidence, at which a fit is done.
_TOLERANCE = 1e-9
#: Weight of the pull toward the beginning: next to nothing, but where the data says nothing
#: (equal scores, only right ones) it makes the fit one and finite.
_PULL = 1e-14
#: A spread of features this small beside their size is rounding.
_LEVEL = 1e-12
#: Newton steps after the optimiser, at most, and what a loss must have to fall for another.
_LAST_STEPS, _FLAT = 50, 1e-18
#: Classes and rows that are worked on together: few enough for the cache.
_CLASSES, _ROWS = 32, 1 << 16


@dataclass(frozen=True, eq=False)
class Prior:
    """What is thought of weights beforehand: [C, P] means, and [C, P, P] inverse covariances."""

    mean: Floats
    precision: Floats

    def __getitem__(self, classes: NDArray[np.int64]) -> Prior:
        return Prior(self.mean[classes], self.precision[classes])


@dataclass(frozen=True, eq=False)
class Labelled:
    """Scores of C classes, and which of them are right.

    score: [N]; right: [N]; offsets: [C + 1], where each class begins
    features: from scores to [P, N] features
    varied: how many of them vary; where there is one more, it is the constant 1
    """

    score: Floats
    right: NDArray[np.bool_]
    offsets: NDArray[np.int64]
    features: Callable[[Floats], Floats]
    varied: int


def fit_logistic(
    data: Labelled,
    start: Floats,
    *,
    rising: bool = True,
    prior: Prior | None = None,
    update: Update | None = None,
) -> Floats:
    """[C, P] the most likely weights of each class, from `start` ([C, P]) on; a class without
    detections has what its prior finds most likely, or its start.

    rising: weights of features that vary are 0 or more. One that would fall below is left out,
        which is the constrained optimum where only one would; of two, the better way is taken.

    Where labels can be told apart without a mistake there is no most likely weight, and the fit
    ends where hardly a mistake is left.
    """
    weights = start.copy()
    if prior is not None:
        for row in np.flatnonzero(np.diff(data.offsets) == 0).tolist():
            weights[row] = prior.mean[row]
            if rising:
                weights[row] = _rising_mode(prior.mean[row], prior.precision[row], data.varied)

    def fit_some(classes: NDArray[np.int64]) -> None:
        some = _Classes.of(data, classes, start[classes], prior and prior[classes]).scaled()
        weights[classes] = some.unscaled(some.rising_minimum() if rising else some.minimum())

    _for_all(data.offsets, fit_some, update)
    return weights


@dataclass(frozen=True, eq=False)
class LineMethod:
    """A method that is a straight line in log odds.

    features, varied: as in `Labelled`
    start:   [P] the weights that change nothing
    to_map:  from the weights to a map
    """

    features: Callable[[Floats], Floats]
    varied: int
    start: tuple[float, ...]
    to_map: Callable[..., LogOdds]

    def fit_all(
        self,
        score: Floats,
        right: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        *,
        update: Update | None = None,
    ) -> list[LogOdds]:
        """The map of each class."""
        data = Labelled(score, right, offsets, self.features, self.varied)
        start = np.tile(self.start, (len(offsets) - 1, 1))
        weights = fit_logistic(data, start, update=update)
        return [self.to_map(*row) for row in weights.tolist()]

    def fit(self, score: Floats, right: NDArray[np.bool_]) -> LogOdds:
        """The map of one class."""
        (found,) = self.fit_all(score, right, np.array([0, len(score)]))
        return found


def likelihoods(data: Labelled, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """[C] log loss of each class, its [C, P] slope and its [C, P, P] curvature, summed over its
    rows, at the weights ([C, P])."""
    loss, slope = np.zeros(len(weights)), np.zeros(weights.shape)
    curvature = np.zeros((*weights.shape, weights.shape[1]))

    def look_at(classes: NDArray[np.int64]) -> None:
        some = _Classes.of(data, classes, weights[classes])
        seen = some.look(weights[classes])
        loss[classes] = seen.loss * some.evidence
        slope[classes] = seen.slope * some.evidence[:, None]
        curvature[classes] = seen.curvature * some.evidence[:, None, None]

    _for_all(data.offsets, look_at)
    return loss, slope, curvature


def _for_all(
    offsets: NDArray[np.int64],
    work: Callable[[NDArray[np.int64]], None],
    update: Update | None = None,
) -> None:
    """Works on all classes that have detections, some at a time, on several threads."""
    blocks = list(_blocks(offsets))
    with ThreadPoolExecutor(max(min(thread_count(), len(blocks)), 1)) as pool:
        for classes, _ in zip(blocks, pool.map(work, blocks), strict=True):
            if update is not None:
                update(int(classes[-1]) + 1, len(offsets) - 1)


def _blocks(offsets: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Classes with detections, some at a time."""
    filled = np.flatnonzero(np.diff(offsets))
    begin = 0
    while begin < len(filled):
        rows = offsets[filled[begin:] + 1] - offsets[filled[begin]]
        end = begin + min(max(int(np.searchsorted(rows, _ROWS, side="right")), 1), _CLASSES)
        yield filled[begin:end]
        begin = end


@dataclass(frozen=True, eq=False)
class _Seen:
    """Of each class [c] the log loss, its slope [c, P] and its curvature [c, P, P], all by the
    evidence of the class."""

    loss: Floats
    slope: Floats
    curvature: Floats


@dataclass(frozen=True, eq=False)
class _Classes:
    """Some classes, each with a row at least, and their log losses.

    features: [P, n], of right rows with the sign turned: odds are then those of the wrong answer,
              and sums of what is lost keep their digits where odds are huge
    offsets:  [c + 1] where the rows of each begin
    right:    [c] how many are right
    varied:   how many features vary; where there is one more, it is the constant 1
    scale:    [c, P, P] times the features as given are these
    start:    [c, P] weights toward which there is a little pull
    """

    features: Floats
    offsets: NDArray[np.int64]
    right: NDArray[np.int64]
    varied: int
    scale: Floats
    start: Floats
    prior: Prior | None

    @staticmethod
    def of(
        data: Labelled, classes: NDArray[np.int64], start: Floats, prior: Prior | None = None
    ) -> _Classes:
        """Classes (ascending, only empty ones between them) with their features as they are."""
        begin, end = int(data.offsets[classes[0]]), int(data.offsets[classes[-1] + 1])
        right = data.right[begin:end]
        features = data.features(data.score[begin:end])
        np.negative(features, out=features, where=right)
        offsets = np.append(data.offsets[classes], end) - begin
        return _Classes(
            features,
            offsets,
            np.add.reduceat(right, offsets[:-1], dtype=np.int64),
            data.varied,
            np.tile(np.eye(len(features)), (len(classes), 1, 1)),
            start,
            prior,
        )

    def __getitem__(self, classes: NDArray[np.int64]) -> _Classes:
        rows = self.rows[classes]
        offsets = np.append(0, np.cumsum(rows))
        taken = np.arange(offsets[-1]) + np.repeat(self.offsets[classes] - offsets[:-1], rows)
        return _Classes(
            np.ascontiguousarray(self.features[:, taken]),
            offsets,
            self.right[classes],
            self.varied,
            self.scale[classes],
            self.start[classes],
            self.prior and self.prior[classes],
        )

    @property
    def rows(self) -> NDArray[np.int64]:
        """[c] how many rows each has."""
        return np.diff(self.offsets)

    @property
    def evidence(self) -> NDArray[np.int64]:
        """[c] right or wrong rows, whichever are fewer: what losses are divided by, so that one
        tolerance does for classes in which few are right and for those in which half are."""
        fewer: NDArray[np.int64] = np.minimum(self.right, self.rows - self.right)
        return np.maximum(fewer, 1)

    @property
    def constant(self) -> bool:
        """The last feature is the constant 1."""
        return self.varied < len(self.features)

    def scaled(self) -> _Classes:
        """The same with features of mean 0, where there is a constant to take that up, and of
        spread 1.

        The optimiser has one tolerance and one radius of trust for all weights. Where all scores
        are small, -log(1 - s) is too, and its weight in the thousands.
        """
        features, scale, rows = self.features.copy(), self.scale.copy(), self.rows

        def sums(values: Floats) -> Floats:
            total: Floats = np.add.reduceat(values, self.offsets[:-1])
            return total

        for place in range(self.varied):
            mean = np.zeros(len(rows))
            if self.constant:  # it has the signs of the others
                mean = sums(features[place] * features[-1]) / rows
                features[place] -= np.repeat(mean, rows) * features[-1]
            spread = np.sqrt(sums(features[place] ** 2) / rows)
            level = spread <= _LEVEL * np.abs(mean)
            spread[level] = 1.0
            features[place] *= np.repeat(np.where(level, 0.0, 1 / spread), rows)
            scale[:, place, place] = 1 / spread
            scale[:, place, self.varied :] = -(mean / spread)[:, None]
        back: Floats = np.asarray(np.linalg.inv(scale), dtype=np.float64)
        prior = self.prior and Prior(
            _times(self.prior.mean, back), scale @ self.prior.precision @ scale.transpose(0, 2, 1)
        )
        return replace(
            self, features=features, scale=scale, start=_times(self.start, back), prior=prior
        )

    def unscaled(self, weights: Floats) -> Floats:
        """[c, P] weights of the features as given."""
        return _times(weights, self.scale)

    def look(self, weights: Floats) -> _Seen:
        """The losses at the weights ([c, P])."""
        loss, slope, curvature = _native.logistic_losses(
            self.features, self.offsets, np.ascontiguousarray(weights)
        )
        if self.prior is not None:
            away = weights - self.prior.mean
            pull = _times(away, self.prior.precision)
            loss = loss + (away * pull).sum(axis=1) / 2
            slope, curvature = slope + pull, curvature + self.prior.precision
        evidence = self.evidence[:, None]
        return _Seen(loss / evidence[:, 0], slope / evidence, curvature / evidence[..., None])

    def rising_minimum(self, held: NDArray[np.bool_] | None = None) -> Floats:
        """[c, P] weights of least loss, those of features that vary 0 or more; `held` ones 0."""
        best = self.minimum(held)
        falling = best[:, : self.varied] < 0
        least = np.where(falling.any(axis=1), np.inf, -np.inf)
        for place in range(self.varied):
            those = np.flatnonzero(falling[:, place])
            if not len(those):
                continue
            without = np.zeros((len(those), best.shape[1]), dtype=bool)
            if held is not None:
                without |= held[those]
            without[:, place] = True
            some = self[those]
            found = some.rising_minimum(without)
            loss = some.look(found).loss
            better = loss < least[those]
            best[those[better]], least[those[better]] = found[better], loss[better]
        return best

    def minimum(self, held: NDArray[np.bool_] | None = None) -> Floats:
        """[c, P] weights of least loss, of any sign but for those `held` at 0."""
        count, size = self.start.shape
        held = np.zeros(self.start.shape, dtype=bool) if held is None else held
        free = ~held
        both = free[:, :, None] & free[:, None, :]
        least = np.where(free, _PULL, 1.0)[:, :, None] * np.eye(size)

        def bent(seen: _Seen) -> Floats:
            """Curvatures, never flat; those held are apart."""
            return np.where(both, seen.curvature, 0.0) + least

        last = self.start, self.look(self.start)

        def at(flat: Floats) -> tuple[Floats, _Seen]:
            """Weights and their losses; the curvature is asked for where the loss was."""
            nonlocal last
            weights = flat.reshape(count, size)
            if not np.array_equal(weights, last[0]):
                last = weights.copy(), self.look(weights)
            return last

        def total(flat: Floats) -> tuple[float, Floats]:
            weights, seen = at(flat)
            away = weights - self.start
            slope = np.where(free, seen.slope + _PULL * away, 0.0)
            return float(seen.loss.sum() + _PULL * (away * away).sum() / 2), slope.reshape(-1)

        def curvature(flat: Floats) -> Floats:
            matrix = np.zeros((count, size, count, size))
            each = np.arange(count)
            matrix[each, :, each, :] = bent(at(flat)[1])
            return matrix.reshape(count * size, count * size)

        found = minimize(
            total,
            self._begin(held).reshape(-1),
            jac=True,
            hess=curvature,
            method="dogleg",
            options={
                "gtol": _TOLERANCE,
                "initial_trust_radius": count**0.5,
                "max_trust_radius": 1e6,
            },
        )
        weights: Floats = found.x.reshape(count, size)

        # It stops where float64 hardly sees the loss fall. Slope and curvature, without the pull,
        # still tell how far it is to the bottom.
        def way_down(weights: Floats) -> tuple[Floats, Floats]:
            """[c, P] to the bottom of the parabola, and [c] how deep that is."""
            seen = self.look(weights)
            slope = np.where(free, seen.slope, 0.0)
            step: Floats = np.linalg.solve(bent(seen), slope[..., None])[..., 0].astype(np.float64)
            return step, (slope * step).sum(axis=1)

        step, depth = way_down(weights)
        for _ in range(_LAST_STEPS):
            if depth.max() < _FLAT:
                break
            next_step, left = way_down(weights - step)
            nearer = left < depth
            weights = np.where(nearer[:, None], weights - step, weights)
            step = np.where(nearer[:, None], next_step, 0.0)
            depth = np.where(nearer, left, 0.0)
        return weights

    def _begin(self, held: NDArray[np.bool_]) -> Floats:
        """[c, P] where to begin: the better of the start and what the share of right ones says.
        Far from the labels there is hardly a slope to go by; from the share there always is."""
        start = np.where(held, 0.0, self.start)
        level = np.zeros_like(start)
        if self.constant:
            level[:, -1] = np.log((self.right + 0.5) / (self.rows - self.right + 0.5))
        nearer = self.look(start).loss <= self.look(level).loss
        return np.where(nearer[:, None], start, level)


def _rising_mode(mean: Floats, precision: Floats, varied: int) -> Floats:
    """[P] the most likely weights of a normal distribution, the first `varied` of 0 or more: the
    best of those that hold some of them at 0."""
    best, least = mean, np.inf
    for signs in product((False, True), repeat=varied):
        held = np.zeros(len(mean), dtype=bool)
        held[:varied] = signs
        mode = np.zeros(len(mean))
        pull = precision[np.ix_(~held, held)] @ mean[held]
        mode[~held] = mean[~held] + np.linalg.solve(precision[np.ix_(~held, ~held)], pull)
        away = mode - mean
        depth = float(away @ precision @ away)
        if (mode[:varied] >= 0).all() and depth < least:
            best, least = mode, depth
    return best


def _times(vectors: Floats, matrices: Floats) -> Floats:
    """[c, P] each vector times its matrix."""
    product: Floats = np.einsum("ci,cij->cj", vectors, matrices)
    return product
