"""Scores of rare, common and frequent classes (the paper's figure)."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from lvdet.reporting.detector_study import Study
from lvdet.reporting.figures.style import GROUP_NAMES, figure, model_colour, plain


def score_levels(studies: Sequence[Study]) -> go.Figure | None:
    """Boxes from the 25th to the 75th percentile, whiskers from the 5th to the 95th, the mean
    dashed; relative to the mean score of frequent classes if there are any. None without
    detections."""
    shown = [
        {name: level for name, level in study.levels.levels.items() if level.count > 0}
        for study in studies
    ]
    if not any(shown):
        return None
    relative = all(study.levels.relative for study in studies)
    fig = figure(
        "",
        "score, mean of frequent classes = 1" if relative else "score",
        boxmode="group",
        hovermode="closest",
    )
    for place, (study, levels) in enumerate(zip(studies, shown, strict=True)):
        low, first, middle, third, high = (
            [round(level.quantiles[at], 4) for level in levels.values()] for at in range(5)
        )
        fig.add_trace(
            go.Box(
                x=[GROUP_NAMES[name] for name in levels],
                lowerfence=low,
                q1=first,
                median=middle,
                q3=third,
                upperfence=high,
                mean=[round(level.mean, 4) for level in levels.values()],
                name=plain(study.name),
                marker={"color": model_colour(place)},
            )
        )
    return fig
