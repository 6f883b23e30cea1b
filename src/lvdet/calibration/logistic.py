"""Logistic regression of a few features, for many classes at once.

Each class is fitted separately, by Newton's method in native code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.calibration.maps import Floats, LogOdds
from lvdet.files.progress import Update
from lvdet.threads import thread_count

#: Rows of classes that are fitted between two reports of progress.
_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior on the weights: [C, P] means and [C, P, P] inverse covariances."""

    mean: Floats
    precision: Floats


@dataclass(frozen=True, eq=False)
class Optimum:
    """The most likely weights [C, P] of the classes, and the log loss of each there [C], with its
    gradient [C, P] and curvature [C, P, P]; summed over rows, without the prior."""

    weights: Floats
    loss: Floats
    slope: Floats
    curvature: Floats


@dataclass(frozen=True, eq=False)
class Lines:
    """Rows of C classes, ready to be fitted by lines in log odds.

    features: [V, N], those that vary, in each class of spread 1 and, where there is a constant to
              take that up, of mean 0; the sign turned where right, so that odds are those of the
              wrong answer
    right:    [N] whether each row is right
    offsets:  [C + 1] where each class begins
    scale:    [C, P, P] times the features as they were are these

    Where all scores are small, -log(1 - s) is too, and its weight in the thousands: scaled features
    have one tolerance for all weights.
    """

    features: Floats
    right: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    scale: Floats

    @staticmethod
    def of(
        score: Floats,
        right: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        *,
        varied: int,
        constant: bool,
    ) -> Lines:
        """From scores ([N]). Log odds are linear in log s and -log(1 - s) (`varied` is 2) or in
        their sum (1), plus an optional constant."""
        labels = np.ascontiguousarray(right).view(np.uint8)
        features, mean, spread = _native.scaled_features(
            np.ascontiguousarray(score), labels, offsets, varied, constant, thread_count()
        )
        size = varied + constant
        scale = np.tile(np.eye(size), (len(mean), 1, 1))
        for place in range(varied):
            scale[:, place, place] = 1 / spread[:, place]
            scale[:, place, varied:] = -(mean / spread)[:, place, None]
        return Lines(features, labels, offsets, scale)

    def blocks(self) -> Iterator[slice]:
        """Yields a few classes at a time."""
        classes, begin = len(self.scale), 0
        while begin < classes:
            most = self.offsets[begin] + _ROWS
            end = max(int(np.searchsorted(self.offsets, most, side="right")) - 1, begin + 1)
            yield slice(begin, end)
            begin = end


def fit_logistic(
    data: Lines,
    start: Floats,
    *,
    rising: bool = True,
    prior: Prior | None = None,
    update: Update | None = None,
) -> Optimum:
    """The most likely weights of each class, starting from `start` ([C, P]). A class without
    detections gets the mode of its prior, or its start.

    rising: weights of features that vary are 0 or more. One that would fall below is left out,
        which is the constrained optimum where only one would; of two, the better way is taken.

    Where labels can be told apart without a mistake there is no most likely weight, and the fit
    ends where hardly a mistake is left.
    """
    back: Floats = np.asarray(np.linalg.inv(data.scale), dtype=np.float64)
    begin, known = _times(start, back), None
    if prior is not None:
        spread = data.scale @ prior.precision @ data.scale.transpose(0, 2, 1)
        known = _times(prior.mean, back), spread
    parts = []
    for classes in data.blocks():
        parts.append(
            _native.fit_lines(
                data.features,
                data.right,
                data.offsets[classes.start : classes.stop + 1],
                begin[classes],
                known and (known[0][classes], known[1][classes]),
                rising,
                thread_count(),
            )
        )
        if update is not None:
            update(classes.stop, len(start))
    weights, loss, slope, curvature = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Optimum(
        _times(weights, data.scale),
        loss,
        np.einsum("cij,cj->ci", back, slope),
        back @ curvature @ back.transpose(0, 2, 1),
    )


@dataclass(frozen=True, eq=False)
class LineMethod:
    """A method that fits a line in log odds.

    start:    [P] the weights of the identity
    varied, constant: as in `Lines.of`
    to_map:   from the weights to a map
    """

    start: tuple[float, ...]
    varied: int
    constant: bool
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
        if len(offsets) < 2:
            return []
        data = Lines.of(score, right, offsets, varied=self.varied, constant=self.constant)
        start = np.tile(self.start, (len(offsets) - 1, 1))
        found = fit_logistic(data, start, update=update)
        return [self.to_map(*row) for row in found.weights.tolist()]

    def fit(self, score: Floats, right: NDArray[np.bool_]) -> LogOdds:
        """The map of one class."""
        (found,) = self.fit_all(score, right, np.array([0, len(score)]))
        return found


def _times(vectors: Floats, matrices: Floats) -> Floats:
    """[c, P] each vector times its matrix."""
    product: Floats = np.einsum("ci,cij->cj", vectors, matrices)
    return product
