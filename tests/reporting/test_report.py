"""Reports on all kinds of files, and the files they are written to."""

from __future__ import annotations

import csv
import html
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import plotly.io
import pytest

import lvdet
from long_cases import first
from lvdet.errors import InputError
from lvdet.reporting.report import Report, report
from lvdet.reporting.report_tables import calibration_error_table, protocol_table
from lvdet.simulation.simulate import simulate
from reporting.conftest import needs_chromium
from reporting.hostile import LONG_NAME, HostileSet, hostile_set


def test_a_page_of_lvis_size_is_small(page_file: Path) -> None:
    """1,203 classes and two detectors, at most 10 MB."""
    assert page_file.stat().st_size <= 10_000_000


def test_numbers_are_those_of_evaluate(report: Report, hostile: HostileSet) -> None:
    for study, path in zip(report.studies, hostile.results, strict=True):
        alone = lvdet.evaluate(hostile.annotations, path)
        for name, result in alone.items():
            assert study.evaluation[name].metrics == result.metrics
    compared = lvdet.compare(hostile.annotations, hostile.results, resamples=200)
    assert report.comparison is not None
    assert report.comparison.to_dict() == compared.to_dict()
    assert report.notes() == compared.verdicts


def test_calibration_by_a_fitted_calibrator(hostile: HostileSet) -> None:
    """What the page says of a calibrator is what its calibrated results are worth."""
    gt, dt = hostile.annotations, hostile.results[0]
    calibrator = lvdet.Calibrator("platt").fit(gt, dt)
    one = report(gt, [dt], calibrators=[calibrator])
    calibration = one.studies[0].calibration
    assert calibration is not None
    expected = lvdet.evaluate(gt, calibrator.transform(lvdet.read_detections(dt)))
    for name in ("AP", "APr", "APc", "APf"):
        assert calibration.pool_after[name] == pytest.approx(expected["pool"][name], abs=1e-12)
    assert "platt" in calibration.title
    assert one.comparison is None
    assert one.notes() == []


@pytest.mark.parametrize(("place", "method", "trained"), [(0, "beta", True), (1, "platt", False)])
def test_calibration_by_training_images_or_cross_validation(
    place: int, method: str, trained: bool, hostile: HostileSet
) -> None:
    gt, dt = hostile.annotations, hostile.results[place]
    one = report(gt, [dt], train=[(gt, dt)] if trained else (), method=method)
    source: dict[str, Any] = {"train": (gt, dt)} if trained else {"folds": 5}
    (block,) = lvdet.calibrate(gt, dt, methods=[method], oracle=False, **source).blocks
    calibration = one.studies[0].calibration
    assert calibration is not None
    for name, value in block.rows[method].pool.items():
        assert calibration.pool_after[name] == pytest.approx(value, abs=1e-12)
        assert calibration.pool_before[name] == pytest.approx(
            block.uncalibrated.pool[name], abs=1e-12
        )


def test_calibration_is_judged_by_what_it_was_fitted_for(hostile: HostileSet) -> None:
    """A calibrator of IoU 0.5 gives chances of that, and is not held to another IoU."""
    gt, dt = hostile.annotations, hostile.results[0]
    calibrator = lvdet.Calibrator("platt").fit(gt, dt, iou_threshold=0.5)
    calibration = report(gt, [dt], calibrators=[calibrator]).studies[0].calibration
    assert calibration is not None
    assert calibration.iou_threshold == 0.5
    measured = lvdet.Calibrator("identity").measure(gt, dt, iou_threshold=0.5)
    before, after = calibration.before["all"], calibration.after["all"]
    assert before.count.sum() == measured.errors.overall.count
    assert before.mean_gap == measured.errors.overall.expected
    assert after.mean_gap < before.mean_gap


@pytest.mark.parametrize("style", ["lvis", "coco"])
@pytest.mark.parametrize("method", ["platt", "histogram"])
def test_calibration_errors_are_those_of_calibrate_measure(style: str, method: str) -> None:
    """Before and after; the limit per image bites, and histogram changes the order."""
    gt, dt = simulate(
        *(11, 4),  # fewer than 10,000 in all: what the class limit leaves is everything
        dets_per_image=None,
        candidates_per_image=900,
        style=style,  # type: ignore[arg-type]
        seed=6,
    )
    assert np.bincount(dt.image).max() > 400
    calibrator = lvdet.Calibrator(method).fit(gt, dt)
    calibration = report(gt, [dt], calibrators=[calibrator]).studies[0].calibration
    assert calibration is not None
    for scored, errors in (
        (dt, calibration.errors_before),
        (calibrator.transform(dt), calibration.errors_after),
    ):
        measured = lvdet.Calibrator("identity").measure(gt, scored, laece_iou_threshold=0.5)
        assert [one.name for one in errors] == ["ECE", "LaECE", "LaACE", "D-ECE"]
        for one, expected in zip(errors, measured.measures, strict=True):
            assert one.value == pytest.approx(expected.value, abs=1e-12, nan_ok=True)
            assert one.detections == expected.detections
            assert (one.bins, one.iou_threshold, one.minimum_score, one.classes is None) == (
                *(expected.bins, expected.iou_threshold, expected.minimum_score),
                expected.classes is None,
            )
    limit = "300/image" if style == "lvis" else "100/image/class"
    budgets = [one.budget for one in calibration.errors_after]
    assert budgets == ["10000/class", *[f"10000/class,{limit}"] * 3]


def test_calibration_errors_are_on_the_page(report: Report, page_file: Path) -> None:
    """Each with what it was computed under."""
    layout = calibration_error_table(report.studies)
    assert layout is not None
    assert layout.head[3:7] == ["bins", "IoU", "budget", "score"]
    page = re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page_file.read_text())))
    for line in layout.lines:
        shown = re.sub(r"\s+", " ", " ".join(f"{cell.value} {cell.delta}" for cell in line))
        assert shown.strip() in page, shown
    assert len(layout.lines) == 4 * len(report.studies)


def test_detections_are_correct_or_incorrect(small_page: Path) -> None:
    """The page has the words of the glossary, for marks and for people who hear it."""
    item = r'<li class="([\w-]+)" .*?<span class="visually-hidden"> ([\w ]+):'
    assert set(re.findall(item, small_page.read_text())) == {
        ("correct", "correct"),
        ("incorrect", "incorrect"),
        ("not-counted", "not counted"),
    }


def test_calibration_of_something_else_is_refused(hostile: HostileSet) -> None:
    gt, dt = hostile.annotations, hostile.results[0]
    other_gt, other_dt = simulate(20, 6, seed=2)
    other = lvdet.Calibrator("platt").fit(other_gt, other_dt)
    with pytest.raises(InputError, match="do not include category_id"):
        report(gt, [dt], calibrators=[other])
    with pytest.raises(InputError, match="is being evaluated"):
        report(gt, [dt], train=[(other_gt, other_dt)])
    nothing = lvdet.read_detections(dt)[:0]
    with pytest.raises(InputError, match="nothing to fit"):
        report(gt, [dt], train=[(gt, nothing)])


def test_warnings_of_everything_are_there(report: Report) -> None:
    assert report.comparison is not None
    assert any("rare classes" in text and "APr" in text for text in report.warnings)
    for text in [*report.studies[0].evaluation.warnings, *report.comparison.warnings]:
        assert text in report.warnings


def test_scores_that_are_no_chances(hostile: HostileSet) -> None:
    """Logits are reported on, but for calibration, and the page says why."""
    dt = lvdet.read_detections(hostile.results[0])
    logits = dt.with_scores(np.log(np.clip(dt.score, 1e-6, 1 - 1e-6)))
    one = report(hostile.gt, [logits])
    assert one.studies[0].calibration is None
    assert any("sigmoid" in text for text in one.warnings)
    page = one.to_html()
    assert "sigmoid" in page
    assert "mean of frequent classes = 1" not in page


@pytest.mark.parametrize("style", ["coco", "lvis"])
@pytest.mark.parametrize("masks", [False, True])
def test_all_kinds_of_files(style: str, masks: bool) -> None:
    gt, dt = simulate(20, 6, masks=masks, style=style, seed=2)
    one = report(gt, [dt, dt[::2]], resamples=100)
    page = one.to_html()
    assert ("masks" if masks else "boxes") in page
    assert ('name="group" value="r"' in page) == (style == "lvis")
    assert ('data-figure="limit-by-frequency"' in page) == (style == "lvis")
    assert ("Classes compete for the limit" in page) == (style == "lvis")
    assert ("mean of frequent classes = 1" in page) == (style == "lvis")


def test_results_with_nothing_in_them(hostile: HostileSet) -> None:
    dt = lvdet.read_detections(hostile.results[0])
    one = report(hostile.gt, [dt[:0]])
    assert any("no detections" in text for text in one.warnings)
    assert "were not calibrated" in one.to_html()


def test_annotations_with_nothing_in_them() -> None:
    gt, dt = simulate(5, 4, seed=0)
    nothing = gt.where(np.zeros(len(gt), dtype=bool))
    assert "–" in report(nothing, [dt]).to_html()


def test_one_image() -> None:
    gt, dt = simulate(1, 3, seed=0)
    assert report(gt, [dt]).to_html().count("<h1>") == 1


def test_refusals(hostile: HostileSet) -> None:
    gt, dt = hostile.annotations, hostile.results[0]
    calibrator = lvdet.Calibrator("platt").fit(gt, dt)
    for message, arguments in (
        ("expected 1 to 6", {"detections": []}),
        ("expected 1 to 6", {"detections": [dt] * 7}),
        ("either", {"calibrators": [calibrator], "train": [(gt, dt)]}),
        ("2 calibrators for 1", {"calibrators": [calibrator] * 2}),
        ("2 training sets for 1", {"train": (gt, [dt, dt])}),
        ("without a folder of images", {"image_ids": [1]}),
        ("method is 'magic'", {"method": "magic"}),
        ("names", {"names": ["a", "b"]}),
    ):
        with pytest.raises(InputError, match=message):
            report(gt, **({"detections": [dt]} | arguments))


def test_equal_names_are_told_apart(tmp_path: Path) -> None:
    small = hostile_set(tmp_path, classes=20)
    one = report(small.annotations, [small.results[1]] * 2, resamples=100)
    assert [study.name for study in one.studies] == [LONG_NAME, f"{LONG_NAME} (2)"]


@needs_chromium
@pytest.mark.parametrize("drawn", first(1, [2, 1000]))
def test_figures_and_tables_for_papers(
    drawn: int, report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some files are drawn by the browser, and the others are copies of them."""
    draw = plotly.io.write_images

    def draw_some(figures: list[Any], paths: list[Path], **options: Any) -> None:
        some = {key: options[key][:drawn] for key in ("height", "scale")}
        draw(figures[:drawn], paths[:drawn], **options | some)
        for path in paths[drawn:]:
            shutil.copy(next(one for one in paths if one.suffix == path.suffix), path)

    monkeypatch.setattr(plotly.io, "write_images", draw_some)
    written = report.save_figures(tmp_path / "new" / "folder")
    names = {path.name for path in written}
    for name in (
        "deltas",
        "limit-per-image",
        "limit-by-frequency-1",
        "limit-by-frequency-2",
        "pooled-precision",
        "class-precision",
        "score-levels",
        "reliability-before-1",
        "reliability-after-2",
        "error-costs",
        "confusions-1",
    ):
        assert {f"{name}.pdf", f"{name}.png"} <= names
    for path in written:
        content = path.read_bytes()
        if path.suffix == ".pdf":
            assert content.startswith(b"%PDF")
        elif path.suffix == ".png":
            assert content.startswith(b"\x89PNG")
            width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
            assert width == 1920
            assert height >= 1200
    text = (tmp_path / "new" / "folder" / "tables.tex").read_text()
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") >= 7
    labels = re.findall(r"\\label\{(.*?)\}", text)
    assert len(set(labels)) == len(labels)
    assert "AP-Fixed AP50" in text
    fixed = report.studies[0].evaluation["fixed"].AP
    assert f"{100 * fixed:.2f}" in text
    assert f"{100 * fixed:.2f}" in (tmp_path / "new" / "folder" / "tables.md").read_text()
    with open(tmp_path / "new" / "folder" / "tables.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    errors = [
        (row["table"], row["row"], row["column"]) for row in rows if "Errors at" in row["table"]
    ]
    assert len(errors) == len(set(errors)) > 50
    (row,) = (
        row for row in rows if row["row"] == "AP-Fixed (10000/class)" and row["column"] == LONG_NAME
    )
    assert row["value"] == f"{100 * report.studies[1].evaluation['fixed'].AP:.2f}"
    with open(tmp_path / "new" / "folder" / "classes.csv", newline="") as file:
        classes = list(csv.DictReader(file))
    assert len(classes) == 1203
    assert [int(one["id"]) for one in classes] == hostile_ids(report)


def hostile_ids(report: Report) -> list[int]:
    ids: list[int] = report.studies[0].evaluation.categories.ids.tolist()
    return ids


def test_without_a_browser_nothing_is_lost(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables are written though figures cannot be drawn, and the error says what is missing."""

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no Chrome\nand a long story")

    monkeypatch.setattr(plotly.io, "write_images", fail)
    with pytest.raises(lvdet.LvdetError, match=r"kaleido and Chrome.*\(no Chrome\)") as caught:
        report.save_figures(tmp_path)
    assert not isinstance(caught.value, InputError)
    assert {path.name for path in tmp_path.iterdir()} == {
        "tables.tex",
        "tables.md",
        "tables.csv",
        "classes.csv",
    }


def test_a_page_is_written_whole_or_not_at_all(report: Report, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    target.write_text("before")
    broken = replace(report, studies=[replace(report.studies[0], levels=None)])  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        broken.save(target)
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_a_vocabulary_without_classes() -> None:
    gt, dt = simulate(5, 4, seed=0)
    nothing = replace(
        gt.where(np.zeros(len(gt), dtype=bool)),
        categories=lvdet.Categories(np.zeros(0, np.int64), (), np.zeros(0, np.str_)),
        negative=None,
        not_exhaustive=None,
    )
    page = report(nothing, [dt[:0]]).to_html()
    assert 'data-figure="class-precision"' in page


def test_calibration_counts_what_ap_fixed_counts(
    hostile: HostileSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best of each class alone are calibrated and judged."""
    monkeypatch.setattr("lvdet.reporting.calibration_study.FIXED_PER_CLASS", 5)
    gt, dt = hostile.annotations, hostile.results[0]
    calibration = report(gt, [dt], train=[(gt, dt)], method="platt").studies[0].calibration
    assert calibration is not None
    measured = lvdet.Calibrator("identity").measure(gt, dt, dets_per_class=5)
    before = calibration.before["all"]
    assert before.count.sum() == measured.errors.overall.count
    assert before.mean_gap == measured.errors.overall.expected
    assert before.count.sum() < len(lvdet.read_detections(dt))
    best = lvdet.read_detections(dt, dets_per_class=5)
    measured = lvdet.Calibrator("identity").measure(gt, best, laece_iou_threshold=0.5)
    for one, expected in zip(calibration.errors_before, measured.measures, strict=True):
        assert one.value == pytest.approx(expected.value, abs=1e-12)
        assert one.detections == expected.detections


def test_columns_for_each_detector_with_their_distance(report: Report) -> None:
    layout = protocol_table(report.studies)
    assert layout.head == ["", *(study.name for study in report.studies)]
    shown = {line[0].value: line[1:] for line in layout.lines}
    for label, protocol, metric in (
        ("AP-Old (300/image)", "old", "AP"),
        ("AP-Fixed (10000/class)", "fixed", "AP"),
        ("AP-Pool APr", "pool", "APr"),
    ):
        first, second = (study.evaluation[protocol][metric] for study in report.studies)
        assert [cell.value for cell in shown[label]] == [f"{100 * v:.2f}" for v in (first, second)]
        assert [cell.delta for cell in shown[label]] == ["", f"{100 * (second - first):+.2f}"]
    assert len(shown) == 12
