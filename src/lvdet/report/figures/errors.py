"""Where the errors are, and which classes are confused."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from lvdet.diagnosis.kinds import KINDS
from lvdet.report.figures.style import figure, model_colour, percents, plain
from lvdet.report.study import Study

#: Pairs of classes that are drawn.
SHOWN = 15


def error_costs(studies: Sequence[Study]) -> go.Figure:
    """Points of AP that each kind of error costs, a bar a detector."""
    first = studies[0].diagnosis
    fig = figure("", f"points of {first.metric}", barmode="group", hovermode="x unified")
    for place, study in enumerate(studies):
        costs = study.diagnosis.costs
        fig.add_trace(
            go.Bar(
                x=list(KINDS),
                y=percents([costs[kind]["all"] for kind in KINDS]),
                name=plain(study.name),
                marker={"color": model_colour(place)},
                hovertemplate="%{y:.2f}",
            )
        )
    return fig


def confusions(study: Study) -> go.Figure | None:
    """The pairs of classes that are confused most; None where there are none."""
    rows = study.diagnosis.confusions.rows(SHOWN)[::-1]
    if not rows:
        return None
    fig = figure("errors", "", hovermode="closest", height=440)
    fig.add_trace(
        go.Bar(
            x=[row["count"] for row in rows],
            # A line each even where names are cut to the same text.
            y=list(range(len(rows))),
            customdata=[round(row["highest_score"], 4) for row in rows],
            orientation="h",
            marker={"color": model_colour(0)},
            hovertemplate="%{x:,} errors, highest score %{customdata:.3f}<extra></extra>",
        )
    )
    fig.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[
            f"{_short(row['detected']['name'])} for {_short(row['actual']['name'])}" for row in rows
        ],
    )
    return fig


def _short(name: str) -> str:
    return plain(name if len(name) <= 18 else f"{name[:17]}…")
