"""Precision against recall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from lvdet.reporting.detector_study import Study
from lvdet.reporting.figures.style import (
    GROUP_COLOURS,
    GROUP_DASHES,
    GROUP_NAMES,
    figure,
    model_colour,
    plain,
)


def pooled_precision(studies: Sequence[Study]) -> go.Figure:
    """All classes in one ranking, one curve per detector: the area under it is AP-Pool."""
    fig = _empty()
    for place, study in enumerate(studies):
        line = _line(study.curves.recalls, study.curves.pools["all"], study.name)
        fig.add_trace(line.update(line={"color": model_colour(place)}))
    return fig


def precision_by_frequency(study: Study) -> go.Figure:
    """Rare, common and frequent classes, each in one ranking."""
    fig = _empty()
    for group, precision in study.curves.pools.items():
        if not np.isnan(precision).all():
            line = _line(study.curves.recalls, precision, GROUP_NAMES[group])
            fig.add_trace(
                line.update(line={"color": GROUP_COLOURS[group], "dash": GROUP_DASHES[group]})
            )
    return fig


def class_precision(studies: Sequence[Study], row: int) -> go.Figure:
    """One class, one curve per detector (its area is the class's AP); dotted at IoU 0.5."""
    fig = _empty()
    for place, study in enumerate(studies):
        curves = study.curves
        line = _line(curves.recalls, curves.classes[row], study.name)
        fig.add_trace(line.update(line={"color": model_colour(place)}))
        at_50 = _line(curves.recalls, curves.classes_50[row], study.name)
        at_50.update(line={"color": model_colour(place), "dash": "dot"}, showlegend=False)
        at_50.hovertemplate = "%{y:.3f} at IoU 0.5"
        fig.add_trace(at_50)
    return fig


def _empty() -> go.Figure:
    fig = figure("recall", "precision")
    fig.update_xaxes(range=[0, 1])
    fig.update_yaxes(range=[0, 1.02])
    return fig


def _line(recalls: NDArray[np.float64], precision: NDArray[np.float64], name: str) -> go.Scatter:
    values = [None if value != value else round(value, 4) for value in precision.tolist()]
    return go.Scatter(
        x=[round(value, 2) for value in recalls.tolist()],
        y=values,
        name=plain(name),
        mode="lines",
        hovertemplate="%{y:.3f}",
    )
