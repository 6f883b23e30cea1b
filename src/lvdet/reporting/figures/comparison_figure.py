"""Differences between detectors, with their intervals."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from lvdet.comparison.comparison_result import Comparison
from lvdet.reporting.figures.style import figure, model_colour, plain


def deltas(comparison: Comparison) -> go.Figure:
    """How many points of AP each detector is above the baseline, by protocol and frequency group;
    filled markers are significant."""
    rows = [
        (protocol, metric)
        for protocol, metrics in comparison.compared[0].protocols.items()
        for metric, one in metrics.items()
        if not math.isnan(one.delta)
    ]
    fig = figure(
        "points of AP",
        "",
        hovermode="closest",
        height=140 + 18 * len(rows) * max(len(comparison.compared), 1),
        shapes=[_zero()],
    )
    for place, compared in enumerate(comparison.compared):
        shown = [compared.protocols[protocol][metric] for protocol, metric in rows]
        offset = 0.8 / len(comparison.compared) * (place - (len(comparison.compared) - 1) / 2)
        fig.add_trace(
            go.Scatter(
                x=[round(100 * one.delta, 3) for one in shown],
                y=[len(rows) - 1 - at - offset for at in range(len(rows))],
                error_x={
                    "type": "data",
                    "array": [_points(one.high - one.delta) for one in shown],
                    "arrayminus": [_points(one.delta - one.low) for one in shown],
                },
                customdata=[
                    f"{100 * one.low:+.2f} to {100 * one.high:+.2f}"
                    if not math.isnan(one.low)
                    else "no interval"
                    for one in shown
                ],
                mode="markers",
                name=plain(compared.name),
                marker={
                    "color": model_colour(place + 1),
                    "size": 10,
                    "symbol": ["circle" if one.holds else "circle-open" for one in shown],
                },
                hovertemplate="%{x:+.2f} (%{customdata})",
            )
        )
    fig.update_yaxes(
        tickvals=list(range(len(rows)))[::-1],
        ticktext=[f"AP-{protocol.capitalize()} {metric}" for protocol, metric in rows],
        range=[-0.7, len(rows) - 0.3],
    )
    return fig


def _zero() -> dict[str, object]:
    line = {"color": "#7a8290", "width": 1}
    return {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper", "line": line}


def _points(value: float) -> float | None:
    return None if math.isnan(value) else round(100 * value, 3)
