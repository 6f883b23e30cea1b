"""What an object looks like at a prompt and in a notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lvdet


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """One of every public class that holds data."""
    gt, dt = lvdet.simulate(images=20, classes=12, dets_per_image=20, masks=True, seed=1)
    gt = type(gt)(**{**vars(gt), "source": "a <b>\nname"})
    reranked = lvdet.rerank(gt, dt, dets_per_class="best")
    evaluation = lvdet.evaluate(gt, dt)
    swept = lvdet.sweep(gt, dt, dets_per_image=[5, None])
    objects = [
        gt,
        gt.images,
        gt.categories,
        gt.masks,
        dt,
        evaluation,
        evaluation["fixed"],
        swept,
        swept.rows[0],
        lvdet.audit(gt, dt),
        reranked,
        reranked.search,
        lvdet.compare(gt, [dt, reranked.detections], resamples=100),
        lvdet.diagnose(gt, dt),
        lvdet.report(gt, [dt]),
        lvdet.calibrate(gt, dt, methods=["platt"], folds=2, oracle=False),
        lvdet.Calibrator("platt"),
        lvdet.Calibrator("platt").fit(gt, dt, iou_threshold=0.5),
        lvdet.Calibrator("identity").measure(gt, dt),
        lvdet.PerImage(300),
    ]
    return {f"{type(item).__name__} {place}": item for place, item in enumerate(objects)}


def test_every_repr_is_one_short_line(shown: dict[str, Any]) -> None:
    for name, item in shown.items():
        line = repr(item)
        assert line.startswith(name.split()[0]), line
        assert "\n" not in line, name
        assert len(line) < 250, (name, len(line))


def test_sizes_are_in_it(shown: dict[str, Any]) -> None:
    gt, dt = shown["GroundTruth 0"], shown["Detections 4"]
    assert repr(gt) == f"GroundTruth(20 images, 12 classes, {len(gt):,} objects, masks)"
    assert repr(dt) == f"Detections({len(dt):,} detections, 20 images, 12 classes, masks)"


RESULTS = ("Evaluation", "Sweep", "Audit", "Reranking", "Comparison", "Diagnosis", "Report")


def test_notebooks_get_escaped_tables(shown: dict[str, Any]) -> None:
    tables = {name: item for name, item in shown.items() if hasattr(item, "_repr_html_")}
    assert {name.split()[0] for name in tables} >= {*RESULTS, "GroundTruth", "Detections"}
    for name, item in tables.items():
        html = item._repr_html_()
        assert html.count("<table>") == html.count("</table>") > 0, name
        assert "<b>" not in html, name


def test_results_have_one_base(shown: dict[str, Any]) -> None:
    from lvdet.rendering.result import Result

    for name, item in shown.items():
        if name.split()[0] in (*RESULTS, "Measurement", "CalibrationTable"):
            assert isinstance(item, Result), name
            assert item.to_dict()["warnings"] == item.warnings, name
            assert str(item).startswith(item.title()), name


def test_a_result_is_saved_by_its_ending(shown: dict[str, Any], tmp_path: Path) -> None:
    for name, item in shown.items():
        if not hasattr(item, "ENDINGS"):
            continue
        for ending in item.ENDINGS:
            path = tmp_path / f"{name}{ending}"
            item.save(path)
            written = path.read_text(encoding="utf-8")
            if ending == ".json":
                assert json.loads(written)["warnings"] == item.warnings
            elif ending == ".md":
                assert "| ---: |" in written or "|---" in written, name
            elif ending == ".tex":
                assert written.count(r"\begin{tabular}") == written.count(r"\end{tabular}") > 0
            elif ending == ".csv":
                assert written.count("\n") > 1
        with pytest.raises(lvdet.InputError, match="unknown extension"):
            item.save(tmp_path / "out.txt")


def test_numbers_are_aligned_right_and_words_left() -> None:
    from lvdet.rendering.table_text import Cell, Layout, latex, markdown

    head = ["", "verdict", "paper", "effect", "limit"]
    lines = [
        [Cell("Repeat factors help."), Cell("holds"), Cell("+0.8"), Cell("–"), Cell("∞")],
        [Cell("7 classes"), Cell(""), Cell(""), Cell("1.20 ± 0.1", "-3.00"), Cell("10,000")],
    ]
    table = Layout("table", "Verdicts", head, lines)
    assert markdown([table]).splitlines()[3] == "| --- | --- | ---: | ---: | ---: |"
    assert r"\begin{tabular}{llrrr}" in latex([table])
