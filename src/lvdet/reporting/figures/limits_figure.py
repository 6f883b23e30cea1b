"""AP under limits on detections."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from lvdet.evaluation.summary import NAMES
from lvdet.reporting.detector_study import BY_CLASS, BY_IMAGE, RERANKED, Study
from lvdet.reporting.figures.style import (
    GROUP_COLOURS,
    GROUP_DASHES,
    GROUP_NAMES,
    figure,
    limit_text,
    model_colour,
    percents,
    plain,
)
from lvdet.studies.sweep_result import SweepRow


def limit_per_image(studies: Sequence[Study]) -> go.Figure:
    """AP of each detector by detections per image; dashed where a class cap comes first."""
    fig = _empty("detections per image")
    for place, study in enumerate(studies):
        rows, reranked = _rows(study, BY_IMAGE.name), _rows(study, RERANKED)
        fig.add_trace(_line(rows, "AP", study.name, model_colour(place), image=True))
        if reranked:
            line = _line(reranked, "AP", study.name, model_colour(place), image=True)
            line.update(line={"dash": "dash"}, marker={"symbol": "circle-open"}, showlegend=False)
            line.hovertemplate = f"%{{y:.2f}}, re-ranked with a class cap of {study.class_cap:,}"
            fig.add_trace(line)
    return fig


def limit_by_frequency(study: Study) -> go.Figure:
    """AP of rare, common and frequent classes by detections per image."""
    fig = _empty("detections per image")
    rows = _rows(study, BY_IMAGE.name)
    for metric in NAMES:
        group = metric.removeprefix("AP") or "all"
        if all(row.metrics[metric] != row.metrics[metric] for row in rows):
            continue
        line = _line(rows, metric, GROUP_NAMES[group], GROUP_COLOURS[group], image=True)
        fig.add_trace(line.update(line={"dash": GROUP_DASHES[group]}))
    return fig


def limit_per_class(studies: Sequence[Study]) -> go.Figure:
    """AP of each detector by detections per class, without a limit per image."""
    fig = _empty("detections per class")
    for place, study in enumerate(studies):
        rows = _rows(study, BY_CLASS.name)
        fig.add_trace(_line(rows, "AP", study.name, model_colour(place), image=False))
    return fig


def _empty(limit: str) -> go.Figure:
    fig = figure(limit, "AP, mean over classes (%)")
    fig.update_xaxes(type="category")
    fig.update_yaxes(rangemode="tozero")
    return fig


def _rows(study: Study, table: str) -> list[SweepRow]:
    return [row for row in study.limits.rows if row.table == table]


def _line(
    rows: Sequence[SweepRow], metric: str, name: str, colour: str, *, image: bool
) -> go.Scatter:
    limits = [row.dets_per_image if image else row.dets_per_class for row in rows]
    return go.Scatter(
        x=[limit_text(limit) for limit in limits],
        y=percents([row.metrics[metric] for row in rows]),
        name=plain(name),
        mode="lines+markers",
        line={"color": colour},
        hovertemplate="%{y:.2f}",
    )
