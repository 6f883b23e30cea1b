"""How well calibrated scores are: errors as numbers and curves as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lvdet.calibration.histogram import bin_edges
from lvdet.calibration.labelled_scores import Samples, require_chances
from lvdet.calibration.maps import Floats
from lvdet.errors import InputError

#: Bins of a curve and of the errors computed from it.
BINS = 20
#: Probabilities are clipped to this distance from 0 and 1 before taking logarithms.
_EDGE = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Scores in bins; empty bins are NaN.

    edges: [K + 1] float64; count: [K] int64
    score: [K] mean score; right: [K] share of correct detections
    """

    edges: Floats
    count: NDArray[np.int64]
    score: Floats
    right: Floats

    @property
    def gap(self) -> Floats:
        """[K] the absolute difference between mean score and share of correct detections."""
        return np.abs(self.score - self.right)

    @property
    def mean_gap(self) -> float:
        """The mean gap over detections; NaN if there are none."""
        total = self.count.sum()
        return float(np.nansum(self.gap * self.count) / total) if total else float("nan")


@dataclass(frozen=True)
class CalibrationErrors:
    """The errors of some detections; NaN if there are none.

    count:    detections
    expected: mean gap of 20 bins of equal width, weighted by count (ECE)
    maximum:  their largest gap (MCE)
    adaptive: mean gap of 20 bins of equal count
    brier:    mean square of score minus label
    log_loss: mean of -log of the probability given to the actual label
    """

    count: int
    expected: float
    maximum: float
    adaptive: float
    brier: float
    log_loss: float


@dataclass(frozen=True)
class Reliability:
    """Errors over all detections, by frequency group, and by class (in order of id)."""

    overall: CalibrationErrors
    by_frequency: dict[str, CalibrationErrors]
    by_class: list[CalibrationErrors]


def reliability(samples: Samples, *, by_class: bool = True) -> Reliability:
    """The errors of uncalibrated scores; by_class adds the errors of each class."""
    return Reliability(
        calibration_errors(samples.score, samples.right),
        {
            name: calibration_errors(samples.score[rows], samples.right[rows])
            for name, rows in samples.group_rows().items()
        },
        [
            calibration_errors(samples.score[rows], samples.right[rows])
            for rows in map(samples.rows, range(len(samples.categories) if by_class else 0))
        ],
    )


def calibration_errors(score: ArrayLike, right: ArrayLike) -> CalibrationErrors:
    """The errors of scores ([N], in [0, 1]) against labels ([N])."""
    score, right = _checked(score, right)
    if not len(score):
        nan = float("nan")
        return CalibrationErrors(0, nan, nan, nan, nan, nan)
    by_width = reliability_curve(score, right)
    by_count = reliability_curve(score, right, equal="count")
    chance = np.clip(np.where(right, score, 1 - score), _EDGE, 1.0)
    return CalibrationErrors(
        len(score),
        by_width.mean_gap,
        float(np.nanmax(by_width.gap)),
        by_count.mean_gap,
        float(np.mean((score - right) ** 2)),
        float(-np.mean(np.log(chance))),
    )


def reliability_curve(
    score: ArrayLike, right: ArrayLike, *, bins: int = BINS, equal: str = "width"
) -> ReliabilityCurve:
    """Mean score and share of correct detections, in bins of equal "width" or equal "count".

    A score at an edge belongs to the bin above it. Bins of equal count divide the sorted scores, so
    equal scores may fall into two bins; there are never more bins than scores.
    """
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise InputError(f"bins is {bins!r}, expected a positive integer")
    score, right = _checked(score, right)
    if equal == "width":
        edges = bin_edges(bins)
        place = np.searchsorted(edges[1:-1], score, side="right")
        return _curve(edges, place, score, right)
    if equal != "count":
        raise InputError(f"equal is {equal!r}, expected 'width' or 'count'")
    order = np.argsort(score, kind="stable")
    bins = max(min(bins, len(score)), 1)
    first = np.linspace(0, len(score), bins + 1).astype(np.int64)[:-1]
    edges = np.concatenate([score[order[first]], [1.0]]) if len(score) else np.array([0.0, 1.0])
    edges[0] = 0.0
    place = np.searchsorted(first, np.arange(len(score)), side="right") - 1
    return _curve(edges, place, score[order], right[order])


def _checked(score: ArrayLike, right: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    """Scores and labels as arrays; raises for invalid input."""
    scores, labels = np.asarray(score), np.asarray(right)
    if scores.ndim != 1 or labels.ndim != 1 or len(scores) != len(labels):
        raise InputError(
            f"scores have shape {scores.shape} and labels {labels.shape}, expected two "
            "one-dimensional arrays of the same length"
        )
    if scores.dtype.kind not in "iuf":
        raise InputError(f"scores have dtype {scores.dtype}, expected numbers")
    if labels.dtype.kind not in "biuf" or not (
        labels.dtype == bool or np.isin(labels, (0, 1)).all()
    ):
        raise InputError("labels must all be True or False, or 1 or 0")
    require_chances(scores, lambda row: f"row {row:,}")
    return np.clip(scores, 0.0, 1.0, dtype=np.float64), labels.astype(np.bool_)


def _curve(
    edges: Floats, place: NDArray[np.int64], score: Floats, right: NDArray[np.bool_]
) -> ReliabilityCurve:
    bins = len(edges) - 1
    count = np.bincount(place, minlength=bins)
    filled = np.where(count > 0, count, np.nan)
    return ReliabilityCurve(
        edges,
        count,
        np.bincount(place, weights=score, minlength=bins) / filled,
        np.bincount(place, weights=right, minlength=bins) / filled,
    )
