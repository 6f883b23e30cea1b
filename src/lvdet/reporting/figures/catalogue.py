"""All figures of a report, by the names they have on the page and as files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go

from lvdet.comparison.comparison_result import Comparison
from lvdet.reporting.detector_study import Study
from lvdet.reporting.figures.comparison_figure import deltas
from lvdet.reporting.figures.errors_figure import confusions, error_costs
from lvdet.reporting.figures.limits_figure import (
    limit_by_frequency,
    limit_per_class,
    limit_per_image,
)
from lvdet.reporting.figures.precision_figure import (
    class_precision,
    pooled_precision,
    precision_by_frequency,
)
from lvdet.reporting.figures.reliability_figure import after_calibration, before_calibration
from lvdet.reporting.figures.score_levels_figure import score_levels

#: One figure for all detectors, or one per detector; None if there is nothing to draw.
Versions = list[go.Figure | None]


def all_figures(studies: Sequence[Study], comparison: Comparison | None) -> dict[str, Versions]:
    """The figures by name."""
    first = studies[0].evaluation
    figures: dict[str, Versions] = {}
    if comparison is not None:
        figures["deltas"] = [deltas(comparison)]
    figures["limit-per-image"] = [limit_per_image(studies)]
    if first.categories.groups():
        figures["limit-by-frequency"] = _each(limit_by_frequency, studies)
    figures["limit-per-class"] = [limit_per_class(studies)]
    figures["pooled-precision"] = [pooled_precision(studies)]
    if first.categories.groups():
        figures["precision-by-frequency"] = _each(precision_by_frequency, studies)
    some = len(first.truth) > 0
    largest = class_precision(studies, int(np.argmax(first.truth))) if some else None
    figures["class-precision"] = [largest]
    figures["score-levels"] = [score_levels(studies)]
    figures["reliability-before"] = _each(before_calibration, studies)
    figures["reliability-after"] = _each(after_calibration, studies)
    figures["error-costs"] = [error_costs(studies)]
    figures["confusions"] = _each(confusions, studies)
    return figures


def _each(draw: Callable[[Study], go.Figure | None], studies: Sequence[Study]) -> Versions:
    return [draw(study) for study in studies]
