"""Where the errors are, and which classes are confused."""

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
        ticktext=[f"{_short(row['detected'])} for {_short(row['actual'])}" for row in rows],
    )
    return fig


def _short(category: dict[str, Any]) -> str:
    """The name of a class, kept apart from what is written the other way round."""
    name = category["name"] or f"class {category['id']}"
    return f"\u2068{plain(shortened(name, 18))}\u2069"
