"""What errors cost, and which classes are confused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from lvdet.diagnosis.kinds import KINDS
from lvdet.reporting.detector_study import Study
from lvdet.reporting.figures.style import figure, model_colour, percents, plain, shortened

#: Pairs of classes that are drawn.
SHOWN = 15


def error_costs(studies: Sequence[Study]) -> go.Figure:
    """Points of AP that each kind of error costs, one bar per detector."""
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
    """The most confused pairs of classes; None if no classes are confused."""
    rows = study.diagnosis.confusions.rows(SHOWN)[::-1]
    if not rows:
        return None
    fig = figure("errors", "", hovermode="closest", height=440)
    fig.add_trace(
        go.Bar(
            x=[row["count"] for row in rows],
            # One line per pair, even if shortened names are equal.
            y=list(range(len(rows))),
            customdata=[round(row["highest_score"], 4) for row in rows],
            orientation="h",
            marker={"color": model_colour(0)},
            hovertemplate="%{x:,} errors, highest score %{customdata:.3f}<extra></extra>",
        )
    )
    fig.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[f"{_short(row['detected'])} for {_short(row['actual'])}" for row in rows],
    )
    return fig


def _short(category: dict[str, Any]) -> str:
    """The name of a class, isolated so that right-to-left text does not affect its neighbours."""
    name = category["name"] or f"class {category['id']}"
    return f"\u2068{plain(shortened(name, 18))}\u2069"
