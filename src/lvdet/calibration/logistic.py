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

#: Rows fitted between two progress reports.
_ROWS = 1 << 20


@dataclass(frozen=True, eq=False)
class Prior:
    """The prior on the weights: [C, P] means and [C, P, P] inverse covariances."""

    mean: Floats
    precision: Floats


@dataclass(frozen=True, eq=False)
class Optimum:
    """The most likely weights [C, P] of the classes, and the log loss [C], gradient [C, P] and
    curvature [C, P, P] at them, summed over rows, without the prior."""

    weights: Floats
    loss: Floats
    slope: Floats
    curvature: Floats


@dataclass(frozen=True, eq=False)
class Lines:
    """Rows of C classes, ready for fitting lines in log odds.

    features: [V, N] the features that vary, scaled in each class to spread 1 and, if there is a
              constant to absorb the shift, to mean 0; negated in correct rows, so that the odds
              are the odds of the incorrect answer
    right:    [N] whether each row is correct
    offsets:  [C + 1] where each class begins
    scale:    [C, P, P] the matrices that turn the original features into these

    If all scores are small, so is -log(1 - s), and its weight is in the thousands. Scaling lets one
    tolerance serve all weights.
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

    rising: the weights of the features that vary must be 0 or more. A weight that would be negative
        is left out. If only one would be, that is the constrained optimum; if both would be, the
        better of the two fits wins.

    If the labels are separable, no weight is the most likely, and the fit ends when hardly a
    mistake is left.
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
    to_map:   makes a map of the weights
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
