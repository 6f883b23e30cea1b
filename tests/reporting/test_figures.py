"""Figures show the results they are made of."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

import lvdet
from lvdet.reporting.class_table import NO_CURVE, STEPS, class_columns, class_data
from lvdet.reporting.figures.catalogue import all_figures
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
from lvdet.reporting.figures.style import plain
from lvdet.reporting.report import Report
from reporting.hostile import HostileSet


def test_limits_are_those_of_a_sweep(report: Report, hostile: HostileSet) -> None:
    gt, results = hostile.annotations, hostile.results
    figure = limit_per_image(report.studies)
    assert figure.layout.xaxis.type == "category"
    assert len(figure.data) == 4
    for place, path in enumerate(results):
        limits = [10, 30, 100, 300, 1_000, 3_000, 10_000, None]
        swept = lvdet.sweep(gt, path, dets_per_image=limits)
        own, reranked = figure.data[2 * place : 2 * place + 2]
        assert list(own.x) == [*(f"{limit:,}" for limit in limits[:-1]), "no limit"]
        assert own.y == pytest.approx([100 * row.metrics["AP"] for row in swept.rows], abs=1e-3)
        cap = lvdet.search_class_cap(gt, path).best  # no class has more than 10,000
        assert report.studies[place].class_cap == cap
        again = [lvdet.sweep(gt, path, dets_per_image=n, rerank=cap).rows[-1] for n in limits[:-1]]
        assert reranked.y == pytest.approx([100 * row.metrics["AP"] for row in again], abs=1e-3)
        by_frequency = limit_by_frequency(report.studies[place])
        for trace, name in zip(by_frequency.data, ("AP", "APr", "APc", "APf"), strict=True):
            expected = [100 * row.metrics[name] for row in swept.rows]
            assert trace.y == pytest.approx(expected, abs=1e-3)
    at_10_000 = limit_per_class(report.studies).data[0]
    fixed = report.studies[0].evaluation["fixed"].AP
    assert dict(zip(at_10_000.x, at_10_000.y, strict=True))["10,000"] == pytest.approx(
        100 * fixed, abs=1e-3
    )


def test_areas_under_curves_are_the_numbers(report: Report) -> None:
    """The mean of a curve over the 101 recalls is AP-Pool, or the class's AP, by definition."""
    for place, study in enumerate(report.studies):
        pool = study.evaluation["pool"]
        trace = pooled_precision(report.studies).data[place]
        assert np.mean(trace.y) == pytest.approx(pool.AP, abs=1e-4)
        for one, name in zip(
            precision_by_frequency(study).data, ("AP", "APr", "APc", "APf"), strict=True
        ):
            assert np.mean(one.y) == pytest.approx(pool[name], abs=1e-4)
    evaluations = [study.evaluation.per_class for study in report.studies]
    for study, table in zip(report.studies, evaluations, strict=True):
        for curves, key in ((study.curves.classes, "AP"), (study.curves.classes_50, "AP50")):
            np.testing.assert_allclose(curves.mean(axis=1), table[f"fixed.{key}"], atol=1e-12)
    assert (evaluations[0]["fixed.AP50"] > evaluations[0]["fixed.AP"] + 0.1).any()
    for row in np.flatnonzero(report.studies[0].evaluation.truth > 0)[::100].tolist():
        drawn = class_precision(report.studies, row).data
        for place, table in enumerate(evaluations):
            assert np.mean(drawn[2 * place].y) == pytest.approx(table["fixed.AP"][row], abs=1e-4)
            at_50 = drawn[2 * place + 1]
            assert np.mean(at_50.y) == pytest.approx(table["fixed.AP50"][row], abs=1e-4)


def test_score_levels_by_hand(report: Report, hostile: HostileSet) -> None:
    """Means and quantiles of the 300 best an image, from plain arrays."""
    detections = lvdet.read_detections(hostile.results[0])
    frequency = dict(
        zip(hostile.gt.categories.ids.tolist(), hostile.gt.categories.frequency, strict=True)
    )
    by_image: dict[int, list[tuple[float, str]]] = {}
    for image, category, score in zip(
        detections.image_ids[detections.image].tolist(),
        detections.category_ids[detections.category].tolist(),
        detections.score.tolist(),
        strict=True,
    ):
        by_image.setdefault(image, []).append((score, frequency[category]))
    best = []
    for pairs in by_image.values():  # the earlier row first among equal scores
        best += sorted(pairs, key=lambda pair: -pair[0])[:300]
    unit = np.mean([score for score, group in best if group == "f"])
    trace = score_levels(report.studies).data[0]
    assert list(trace.x) == ["rare", "common", "frequent"]
    for place, group in enumerate("rcf"):
        scores = np.array([score for score, other in best if other == group]) / unit
        shown = [trace.lowerfence, trace.q1, trace.median, trace.q3, trace.upperfence]
        expected = np.quantile(scores, [0.05, 0.25, 0.5, 0.75, 0.95])
        assert [values[place] for values in shown] == pytest.approx(expected, abs=1e-3)
        assert trace.mean[place] == pytest.approx(scores.mean(), abs=1e-3)
    assert trace.mean[2] == 1.0


def test_reliability_counts_what_counts(report: Report) -> None:
    for study in report.studies:
        for draw in (before_calibration, after_calibration):
            figure = draw(study)
            assert figure is not None
            diagonal, whole, *groups = figure.data
            assert list(diagonal.x) == list(diagonal.y) == [0, 1]
            assert [trace.name for trace in groups] == ["rare", "common", "frequent"]
            assert sum(whole.customdata) == sum(sum(trace.customdata) for trace in groups)
            right = np.dot(whole.customdata, whole.y)
            assert study.calibration is not None
            assert sum(whole.customdata) == study.calibration.before["all"].count.sum()
            # Whatever the scores, as many detections are right.
            before = before_calibration(study)
            assert before is not None
            assert right == pytest.approx(
                np.dot(before.data[1].customdata, before.data[1].y), abs=1
            )


def test_calibration_brings_scores_to_the_diagonal(report: Report) -> None:
    for study in report.studies:
        calibration = study.calibration
        assert calibration is not None
        before, after = (
            curves["all"].mean_gap for curves in (calibration.before, calibration.after)
        )
        assert after < before


def test_errors_are_those_of_the_diagnosis(report: Report, hostile: HostileSet) -> None:
    figure = error_costs(report.studies)
    for place, path in enumerate(hostile.results):
        alone = lvdet.diagnose(hostile.annotations, path)
        shown = dict(zip(figure.data[place].x, figure.data[place].y, strict=True))
        assert set(shown) == {
            "classification",
            "localisation",
            "both",
            "duplicate",
            "background",
            "missed",
        }
        for kind, cost in shown.items():
            assert cost == pytest.approx(100 * alone.costs[kind]["all"], abs=1e-3)
        pairs = confusions(report.studies[place])
        assert pairs is not None
        assert list(pairs.data[0].x)[::-1] == alone.confusions.count[:15].tolist()


def test_differences_with_their_intervals(report: Report) -> None:
    comparison = report.comparison
    assert comparison is not None
    (trace,) = deltas(comparison).data
    items = [
        one for metrics in comparison.compared[0].protocols.values() for one in metrics.values()
    ]
    assert len(trace.x) == len(items) == 12
    assert trace.x == pytest.approx([100 * one.delta for one in items], abs=1e-3)
    low = np.array(trace.x) - trace.error_x.arrayminus
    high = np.array(trace.x) + trace.error_x.array
    assert low == pytest.approx([100 * one.low for one in items], abs=2e-3)
    assert high == pytest.approx([100 * one.high for one in items], abs=2e-3)
    held = [symbol == "circle" for symbol in trace.marker.symbol]
    assert held == [one.holds for one in items]


def test_every_figure_can_be_written_as_json(report: Report) -> None:
    for name, versions in all_figures(report.studies, report.comparison).items():
        for figure in versions:
            assert isinstance(figure, go.Figure), name
            assert json.loads(json.dumps(figure.to_plotly_json()["data"], allow_nan=False)), name


def test_class_columns_are_those_of_the_evaluation(report: Report) -> None:
    columns = class_columns(report.studies)
    assert [one.title for one in columns] == [
        "frequency",
        "objects",
        *["AP-Fixed", "AP-Old"] * 2,
        "Δ AP-Fixed",
    ]
    tables = [study.evaluation.per_class for study in report.studies]
    assert columns[1].values == tables[0]["instances"].tolist()
    for column, table, key in (
        (columns[2], tables[0], "fixed.AP"),
        (columns[3], tables[0], "old.AP"),
        (columns[4], tables[1], "fixed.AP"),
        (columns[5], tables[1], "old.AP"),
    ):
        for shown, value in zip(column.values, table[key].tolist(), strict=True):
            assert (shown is None) == (value != value)
            assert shown is None or abs(shown - value) <= 5.1e-5
    delta = tables[1]["fixed.AP"] - tables[0]["fixed.AP"]
    for shown, value in zip(columns[6].values, delta.tolist(), strict=True):
        assert (shown is None) == (value != value)
        assert shown is None or abs(shown - value) <= 5.1e-5


def test_curves_as_bytes(report: Report) -> None:
    import base64

    data = class_data(report.studies, class_columns(report.studies))
    for one, study in zip(data["curves"], report.studies, strict=True):
        for key, curves in (("mean", study.curves.classes), ("at50", study.curves.classes_50)):
            raw = np.frombuffer(base64.b64decode(one[key]), dtype=np.uint8).reshape(curves.shape)
            none = np.isnan(curves)
            assert (raw[none] == NO_CURVE).all()
            assert np.abs(raw[~none] / STEPS - curves[~none]).max() <= 0.5 / STEPS + 1e-12


def test_without_calibration_there_is_no_diagram(report: Report) -> None:
    study = replace(report.studies[0], calibration=None, uncalibrated="because")
    assert before_calibration(study) is None
    assert after_calibration(study) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("a & b", "a &amp; b"),
        ("&lt;", "&amp;lt;"),
        ("two\nlines", "two lines"),
        ("a" * 30 + "b" * 30, "a" * 20 + "…" + "b" * 19),
        ("$x$ and $y$", "&#36;x&#36; and &#36;y&#36;"),
    ],
)
def test_text_for_plotly(text: str, shown: str) -> None:
    assert plain(text) == shown
