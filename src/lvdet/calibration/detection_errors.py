"""The calibration errors reported in papers on object detection: LaECE, LaACE and D-ECE.

LaECE and LaACE as Kuzucu et al. define them (ECCV 2024), D-ECE as Küppers et al. do (CVPRW 2020).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.histogram import bin_edges
from lvdet.calibration.located import Located
from lvdet.calibration.maps import Floats
from lvdet.evaluation.summary import defined
from lvdet.rendering.table_text import Cell, Layout, percent
from lvdet.tables.categories import FREQUENCY_NAMES, Categories

LAECE_BINS = 25
DECE_BINS = 10
DECE_IOU_THRESHOLD = 0.5
DECE_MINIMUM_SCORE = 0.3
#: What an error was computed under, as columns of a table.
CONDITIONS = ("bins", "IoU", "budget", "score")


@dataclass(frozen=True, eq=False)
class DetectionError:
    """A calibration error and what it was computed under; NaN where undefined.

    bins:          of equal width; None if each detection is its own bin
    iou_threshold: at which detections are matched; 0 means any overlap
    budget:        which detections are kept
    minimum_score: only these scores and higher ones count; None for all
    thresholds:    the file of thresholds per class applied before the budget, "" for none
    detections:    how many count
    value:         over all classes; by_frequency: over the classes of each group
    by_class:      [C] for each class; None for an error over all detections together
    classes:       how many classes the value is averaged over; None for an error over all together
    """

    name: str
    bins: int | None
    iou_threshold: float
    budget: str
    minimum_score: float | None
    thresholds: str
    detections: int
    value: float
    by_frequency: dict[str, float]
    by_class: Floats | None = None

    @property
    def scores(self) -> str:
        """Which scores count, in words."""
        if self.thresholds:
            above = "per class"
            return above if self.minimum_score is None else f"{above}, ≥ {self.minimum_score:g}"
        return "all" if self.minimum_score is None else f"≥ {self.minimum_score:g}"

    def conditions(self) -> list[Cell]:
        """Bins, IoU, budget and scores, as shown in tables (`CONDITIONS`)."""
        return [
            Cell("–" if self.bins is None else str(self.bins)),
            Cell(f"{self.iou_threshold:g}" if self.iou_threshold else "any"),
            Cell(self.budget),
            Cell(self.scores),
        ]

    @property
    def classes(self) -> int | None:
        """The number of classes that the value is averaged over."""
        return None if self.by_class is None else int((~np.isnan(self.by_class)).sum())

    def to_dict(self, categories: Categories) -> dict[str, Any]:
        """Plain values, None where undefined."""
        plain = {
            "name": self.name,
            **defined({"value": self.value}),
            "by_frequency": defined(self.by_frequency),
            "bins": self.bins,
            "iou_threshold": self.iou_threshold,
            "budget": self.budget,
            "minimum_score": self.minimum_score,
            "thresholds": self.thresholds or None,
            "detections": self.detections,
            "classes": self.classes,
        }
        if self.by_class is not None:
            ids = map(str, categories.ids.tolist())
            plain["by_class"] = defined(dict(zip(ids, self.by_class.tolist(), strict=True)))
        return plain


def localisation_ece(rows: Located, bins: int = LAECE_BINS) -> Floats:
    """[C] LaECE of each class: over bins of equal width, the mean distance, weighted by count,
    between the mean score and precision times the mean IoU of the correct detections (that product
    is the mean IoU if incorrect ones have IoU 0). NaN for a class without objects or without
    detections."""
    return _by_class(rows, lambda score, target: binned_gap(score, target, bins))


def localisation_ace(rows: Located) -> Floats:
    """[C] LaACE of each class: the mean distance between a detection's score and its IoU."""
    return _by_class(rows, lambda score, target: float(np.abs(score - target).mean()))


def binned_gap(score: Floats, target: NDArray[Any], bins: int) -> float:
    """The mean distance, weighted by count, between mean score and mean target over bins of equal
    width; NaN without detections. A score on an edge belongs to the bin below it."""
    if not len(score):
        return float("nan")
    place = np.searchsorted(bin_edges(bins)[1:-1], score, side="left")
    scores = np.bincount(place, weights=score, minlength=bins)
    targets = np.bincount(place, weights=target, minlength=bins)
    return float(np.abs(scores - targets).sum() / len(score))


def class_mean(values: Floats, rows: NDArray[np.int64] | None = None) -> float:
    """The mean over the classes, or a subset, for which the error is defined."""
    some = values if rows is None else values[rows]
    known = some[~np.isnan(some)]
    return float(known.mean()) if len(known) else float("nan")


def errors_layout(errors: list[DetectionError]) -> Layout:
    """The errors side by side, each with its conditions."""
    groups = list(errors[0].by_frequency)
    return Layout(
        "",
        "Calibration errors as other projects define them, in percent",
        [
            *("", "all", *(FREQUENCY_NAMES[name] for name in groups)),
            *(*CONDITIONS, "detections", "classes"),
        ],
        [
            [
                Cell(error.name),
                Cell(percent(error.value)),
                *(Cell(percent(error.by_frequency[name])) for name in groups),
                *error.conditions(),
                Cell(f"{error.detections:,}"),
                Cell("pooled" if error.classes is None else f"{error.classes:,}"),
            ]
            for error in errors
        ],
    )


def _by_class(rows: Located, error: Callable[[Floats, Floats], float]) -> Floats:
    values = np.full(len(rows.objects), np.nan)
    for row, some in enumerate(rows.class_rows()):
        if rows.objects[row] and some.stop > some.start:
            values[row] = error(rows.score[some], rows.overlap[some])
    return values
