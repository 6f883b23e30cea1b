"""Reliability diagrams: whether scores are probabilities."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from lvdet.calibration.reliability import ReliabilityCurve
from lvdet.reporting.detector_study import Study
from lvdet.reporting.figures.style import (
    GROUP_COLOURS,
    GROUP_DASHES,
    GROUP_NAMES,
    figure,
)


def reliability(curves: dict[str, ReliabilityCurve]) -> go.Figure:
    """The share of correct detections by score; on the diagonal, scores are probabilities. Larger
    markers stand for more detections."""
    fig = figure("score", "share of correct detections", hovermode="closest")
    fig.update_xaxes(range=[0, 1])
    fig.update_yaxes(range=[0, 1.02])
    fig.add_trace(
        go.Scatter(
            x=[0, 1],
            y=[0, 1],
            mode="lines",
            name="ideal",
            line={"color": GROUP_COLOURS["all"], "width": 1, "dash": "dot"},
            hoverinfo="skip",
        )
    )
    for group, curve in curves.items():
        filled = np.flatnonzero(curve.count)
        fig.add_trace(
            go.Scatter(
                x=np.round(curve.score[filled], 4).tolist(),
                y=np.round(curve.right[filled], 4).tolist(),
                customdata=curve.count[filled].tolist(),
                mode="lines+markers",
                name=GROUP_NAMES[group],
                line={"color": GROUP_COLOURS[group], "dash": GROUP_DASHES[group]},
                marker={"size": np.round(3 + 2 * np.log10(curve.count[filled]), 1).tolist()},
                hovertemplate="%{customdata:,} detections: score %{x:.3f}, correct %{y:.3f}",
            )
        )
    return fig


def before_calibration(study: Study) -> go.Figure | None:
    """The detector's own scores; None where they cannot be calibrated."""
    return None if study.calibration is None else reliability(study.calibration.before)


def after_calibration(study: Study) -> go.Figure | None:
    """The calibrated scores."""
    return None if study.calibration is None else reliability(study.calibration.after)
