"""Sentences of the page say what the numbers say."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, nan

import pytest

from lvdet.comparison.differences import Difference
from lvdet.reporting.report import Report
from lvdet.reporting.report import report as make_report
from lvdet.reporting.report_tables import budget_words, metric_table
from lvdet.reporting.wording import lead
from lvdet.simulation.simulate import simulate

BETTER = Difference(0.3, 0.4, 0.01, 0.08, 0.12)
WORSE = Difference(0.4, 0.3, 0.01, -0.12, -0.08)
SAME = Difference(0.4, 0.41, 0.01, -0.01, 0.03)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("300/image", "300 detections per image"),
        ("10000/class", "10,000 detections per class"),
        ("100/image/class", "100 detections per image and class"),
        ("10000/class,300/image", "10,000 detections per class, then 300 detections per image"),
    ],
)
def test_budgets_in_words(budget: str, words: str) -> None:
    assert budget_words(budget) == words


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ((BETTER, WORSE, WORSE), "better than A under AP-Old, but worse under AP-Fixed and"),
        ((BETTER, BETTER, BETTER), "significantly better than A under AP-Old, AP-Fixed and AP-P"),
        ((WORSE, SAME, WORSE), "worse than A under AP-Old and AP-Pool; the difference under AP-F"),
        ((SAME, SAME, SAME), "B and A do not differ significantly under AP-Old, AP-Fixed and"),
    ],
)
def test_the_first_sentence_of_two_detectors(
    changes: tuple[Difference, ...], says: str, report: Report
) -> None:
    assert report.comparison is not None
    (one,) = report.comparison.compared
    protocols = {name: {"AP": change} for name, change in zip(one.protocols, changes, strict=True)}
    other = replace(one, name="B", protocols=protocols)
    compared = replace(report.comparison, baseline="A", compared=[other])
    assert says in lead(replace(report, comparison=compared))


def test_the_first_sentence_of_several_detectors(report: Report) -> None:
    assert report.comparison is not None
    (one,) = report.comparison.compared
    others = [
        replace(one, name=name, protocols={"fixed": {"AP": change}})
        for name, change in (("B", BETTER), ("C", SAME), ("D", BETTER), ("E", WORSE))
    ]
    compared = replace(report.comparison, baseline="A", compared=others)
    assert lead(replace(report, comparison=compared)) == (
        "Compared with A under AP-Fixed, B and D are significantly better, E is significantly "
        "worse and C is not significantly different."
    )


def test_the_first_sentence_of_one_detector() -> None:
    gt, dt = simulate(12, 400, dets_per_image=None, candidates_per_image=1500, bias=1.0, seed=1)
    one = make_report(gt, [dt])
    evaluation = one.studies[0].evaluation
    cost = 100 * (evaluation["fixed"].AP - evaluation["old"].AP)
    assert cost > 0.1
    assert f"costs these results {cost:.2f} points (AP-Old versus AP-Fixed)" in lead(one)
    gt, dt = simulate(10, 4, style="coco", seed=2)
    assert "COCO" in lead(make_report(gt, [dt]))


def test_the_wide_table_has_every_metric_of_every_detector(report: Report) -> None:
    layout = metric_table(report.studies)
    names = [study.name for study in report.studies]
    labels = [f"{name}, AP-{key}" for key in ("Old", "Fixed", "Pool") for name in names]
    assert [line[0].value for line in layout.lines] == labels
    for place, line in enumerate(layout.lines):
        study = report.studies[place % 2]
        metrics = study.evaluation[("old", "fixed", "pool")[place // 2]].metrics
        for head, cell in zip(layout.head[1:], line[1:], strict=True):
            value = metrics.get(head, nan)
            assert cell.value == ("–" if isnan(value) else f"{100 * value:.2f}")
