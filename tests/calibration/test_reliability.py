"""Calibration errors and curves: against netcal and scikit-learn, and by hand."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lvdet
from calibration.made_samples import read_samples
from lvdet.calibration.labelled_scores import Samples
from lvdet.calibration.reliability import (
    CalibrationErrors,
    calibration_errors,
    reliability,
    reliability_curve,
)
from tabled import write_case

Rows = tuple[NDArray[np.float64], NDArray[np.bool_]]
NAN = float("nan")


def drawn(seed: int, count: int, kind: str) -> Rows:
    """Scores and labels of a detector that is off, of several kinds of scores."""
    rng = np.random.default_rng([seed, count])
    score = {
        "even": rng.random(count),
        "low": rng.beta(0.3, 4, count),
        "high": rng.beta(5, 0.5, count),
        "coarse": rng.integers(0, 41, count) / 40,
        "ends": rng.choice([0.0, 1.0, 0.5], count),
    }[kind]
    return score, rng.random(count) < score**1.5


def netcal_errors(score: NDArray[np.float64], right: NDArray[np.bool_]) -> tuple[float, float]:
    """ECE and MCE of 20 bins; netcal warns of everything."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from netcal.metrics import ECE, MCE

        labels = right.astype(np.int64)
        return (
            float(ECE(20, detection=True).measure(score, labels)),
            float(MCE(20, detection=True).measure(score, labels)),
        )


def equal(ours: CalibrationErrors, others: CalibrationErrors) -> bool:
    """All numbers, undefined where undefined."""
    return all(
        one == other or (math.isnan(one) and math.isnan(other))
        for one, other in zip(asdict(ours).values(), asdict(others).values(), strict=True)
    )


# Against packages


@pytest.mark.parametrize("kind", ["even", "low", "high", "ends"])
@pytest.mark.parametrize("count", [2, 3, 40, 3000])
def test_against_netcal(kind: str, count: int) -> None:
    """Away from the edges, some of which netcal has a float too high."""
    for seed in range(3):
        score, right = drawn(seed, count, kind)
        expected, maximum = netcal_errors(score, right)
        ours = calibration_errors(score, right)
        assert ours.expected == pytest.approx(expected, abs=1e-12)
        assert ours.maximum == pytest.approx(maximum, abs=1e-12)
        assert ours.count == count


@pytest.mark.parametrize("kind", ["even", "low", "high", "coarse", "ends"])
@pytest.mark.parametrize("count", [2, 40, 3000])
def test_against_scikit_learn(kind: str, count: int) -> None:
    from sklearn.metrics import brier_score_loss, log_loss

    for seed in range(3):
        score, right = drawn(seed, count, kind)
        ours = calibration_errors(score, right)
        labels = right.astype(np.int64)
        brier = brier_score_loss(labels, score, pos_label=1)
        assert ours.brier == pytest.approx(brier, abs=1e-12)
        assert ours.log_loss == pytest.approx(log_loss(labels, score, labels=[0, 1]), abs=1e-12)


@pytest.mark.parametrize("bins", [1, 2, 7, 20])
@pytest.mark.parametrize(("equal_", "strategy"), [("width", "uniform"), ("count", "quantile")])
def test_curves_against_scikit_learn(bins: int, equal_: str, strategy: str) -> None:
    """At scores without ties and not at edges, where all agree on what a bin holds."""
    from sklearn.calibration import calibration_curve

    count = 7 * 20 * 11 + (equal_ == "width")
    score, right = drawn(1, count, "even")
    share, mean = calibration_curve(right, score, n_bins=bins, strategy=strategy)
    curve = reliability_curve(score, right, bins=bins, equal=equal_)
    assert len(curve.count) == bins
    if equal_ == "count":
        # Its quantiles are on or between two scores: a row may be in the bin beside.
        assert curve.score == pytest.approx(mean, abs=2 * bins / count)
        assert curve.right == pytest.approx(share, abs=2 * bins / count)
    else:
        assert curve.score == pytest.approx(mean, abs=1e-12)
        assert curve.right == pytest.approx(share, abs=1e-12)


# By plain loops


def slow_gaps(score: list[float], right: list[bool], bins: list[list[int]]) -> list[float]:
    return [
        abs(sum(score[row] for row in rows) - sum(right[row] for row in rows)) / len(rows)
        for rows in bins
        if rows
    ]


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.integers(0, 40).map(lambda n: n / 40) | st.floats(0, 1), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_errors_by_plain_loops(rows: list[tuple[float, bool]]) -> None:
    score, right = [one[0] for one in rows], [one[1] for one in rows]
    count = len(rows)
    edges = [number / 20 for number in range(1, 20)]
    by_width: list[list[int]] = [[] for _ in range(20)]
    for row, value in enumerate(score):
        by_width[sum(edge <= value for edge in edges)].append(row)
    order = sorted(range(count), key=lambda row: score[row])
    parts = min(20, count)
    by_count = [order[count * part // parts : count * (part + 1) // parts] for part in range(parts)]
    ours = calibration_errors(np.array(score), np.array(right))
    gaps = slow_gaps(score, right, by_width)
    weighted = [
        gap * len(rows) for gap, rows in zip(gaps, [rows for rows in by_width if rows], strict=True)
    ]
    assert ours.expected == pytest.approx(sum(weighted) / count, abs=1e-12)
    assert ours.maximum == pytest.approx(max(gaps), abs=1e-12)
    adaptive = [
        gap * len(rows)
        for gap, rows in zip(slow_gaps(score, right, by_count), by_count, strict=True)
    ]
    assert ours.adaptive == pytest.approx(sum(adaptive) / count, abs=1e-12)
    brier = sum((value - label) ** 2 for value, label in rows) / count
    assert ours.brier == pytest.approx(brier, abs=1e-12)
    eps = 2.0**-52
    lost = [-math.log(max(value if label else 1 - value, eps)) for value, label in rows]
    assert ours.log_loss == pytest.approx(sum(lost) / count, abs=1e-12)


# Known answers


def test_an_example_by_hand() -> None:
    """Two bins: (0.1, 0.1, 0.1; one right) and (0.9; right)."""
    ours = calibration_errors(
        np.array([0.11, 0.12, 0.13, 0.9]), np.array([True, False, False, True])
    )
    low, high = 1 / 3 - 0.12, 0.1
    assert ours.expected == pytest.approx((3 * low + high) / 4)
    assert ours.maximum == pytest.approx(low)
    # Four bins of one each.
    assert ours.adaptive == pytest.approx((0.89 + 0.12 + 0.13 + 0.1) / 4)
    assert ours.brier == pytest.approx((0.89**2 + 0.12**2 + 0.13**2 + 0.1**2) / 4)
    assert ours.log_loss == pytest.approx(-math.log(0.11 * 0.88 * 0.87 * 0.9) / 4)


def test_nothing() -> None:
    ours = calibration_errors(np.zeros(0), np.zeros(0, dtype=bool))
    assert equal(ours, CalibrationErrors(0, NAN, NAN, NAN, NAN, NAN))


@pytest.mark.parametrize("bins", [1, 20])
@pytest.mark.parametrize("equal_", ["width", "count"])
def test_the_curve_of_nothing(bins: int, equal_: str) -> None:
    curve = reliability_curve(np.zeros(0), np.zeros(0, dtype=bool), bins=bins, equal=equal_)
    assert curve.count.sum() == 0
    assert len(curve.edges) == len(curve.count) + 1
    assert curve.edges[[0, -1]].tolist() == [0.0, 1.0]
    for values in (curve.score, curve.right, curve.gap):
        assert len(values) == len(curve.count)
        assert np.isnan(values).all()


@pytest.mark.parametrize(("score", "right"), [(0.0, False), (1.0, True), (0.3, True), (1.0, False)])
def test_one_row(score: float, right: bool) -> None:
    ours = calibration_errors(np.array([score]), np.array([right]))
    gap = abs(score - right)
    given_ = score if right else 1 - score
    assert ours.count == 1
    assert ours.expected == ours.maximum == ours.adaptive == pytest.approx(gap)
    assert ours.brier == pytest.approx(gap**2)
    assert ours.log_loss == pytest.approx(-math.log(max(given_, 2.0**-52)), abs=1e-15)


def test_all_scores_equal() -> None:
    """One bin of equal width; those of equal count hold five each, right ones first in order."""
    score, right = np.full(100, 0.6), np.arange(100) < 30
    ours = calibration_errors(score, right)
    assert ours.expected == pytest.approx(0.3)
    assert ours.maximum == pytest.approx(0.3)
    assert ours.adaptive == pytest.approx(0.3 * 0.4 + 0.7 * 0.6)
    assert ours.brier == pytest.approx(0.3 * 0.16 + 0.7 * 0.36)
    assert ours.log_loss == pytest.approx(-0.3 * math.log(0.6) - 0.7 * math.log(0.4))


def test_perfect_and_worst() -> None:
    score = np.array([0.0, 0.0, 1.0, 1.0])
    best = calibration_errors(score, score == 1)
    assert equal(best, CalibrationErrors(4, 0.0, 0.0, 0.0, 0.0, 0.0))
    worst = calibration_errors(score, score == 0)
    assert worst.expected == worst.maximum == worst.adaptive == worst.brier == 1.0
    assert worst.log_loss == pytest.approx(52 * math.log(2))


def test_scores_at_edges_belong_to_the_bin_above() -> None:
    edges = np.arange(21) / 20  # 0.15 itself, not the float above it
    curve = reliability_curve(edges, np.zeros(21, dtype=bool))
    assert curve.edges.tolist() == edges.tolist()
    assert curve.count.tolist() == [1] * 19 + [2]  # 1 is in the last, there is none above it
    assert curve.score.tolist() == pytest.approx([*edges[:19], (edges[19] + 1) / 2])
    below = np.nextafter(edges[1:], 0)
    curve = reliability_curve(below, np.zeros(20, dtype=bool))
    assert curve.count.tolist() == [1] * 20


def test_bins_of_equal_count_with_ties() -> None:
    """Rows are taken in order of score, equal scores in the order they have; a tie may be cut."""
    score = np.array([0.5, 0.2, 0.5, 0.5, 0.2, 0.9])
    right = np.array([True, False, False, True, True, True])
    curve = reliability_curve(score, right, bins=3, equal="count")
    assert curve.count.tolist() == [2, 2, 2]
    assert curve.score == pytest.approx([0.2, 0.5, 0.7])
    assert curve.right == pytest.approx([0.5, 0.5, 1.0])
    assert curve.edges == pytest.approx([0.0, 0.5, 0.5, 1.0])
    assert curve.gap == pytest.approx([0.3, 0.0, 0.3])


def test_no_more_bins_of_equal_count_than_scores() -> None:
    curve = reliability_curve(
        np.array([0.7, 0.1, 0.4]), np.array([True, False, True]), equal="count"
    )
    assert curve.count.tolist() == [1, 1, 1]
    assert curve.score.tolist() == [0.1, 0.4, 0.7]
    assert curve.right.tolist() == [0, 1, 1]


def test_empty_bins_are_undefined() -> None:
    curve = reliability_curve(np.array([0.1, 0.9]), np.array([True, True]), bins=4)
    assert curve.count.tolist() == [1, 0, 0, 1]
    for values in (curve.score, curve.right, curve.gap):
        assert np.isnan(values).tolist() == [False, True, True, False]


@pytest.mark.parametrize("bins", [0, -1, 2.0, True, "20", None])
def test_bins_that_make_no_sense(bins: Any) -> None:
    with pytest.raises(lvdet.InputError, match="expected a positive integer"):
        reliability_curve(np.array([0.5]), np.array([True]), bins=bins)


def test_an_unknown_kind_of_bins() -> None:
    with pytest.raises(lvdet.InputError, match="equal is 'size', expected 'width' or 'count'"):
        reliability_curve(np.array([0.5]), np.array([True]), equal="size")


def test_lists_and_whole_numbers_are_taken() -> None:
    ours = calibration_errors([0.25, 1], [0, 1])  # type: ignore[arg-type,list-item]
    assert ours.expected == pytest.approx(0.125)
    assert reliability_curve([0, 1], [0, 1]).count.sum() == 2  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [calibration_errors, reliability_curve])
@pytest.mark.parametrize(
    ("score", "right", "says"),
    [
        ([0.5, 1.5], [True, False], "row 1: score is 1.5"),
        ([-3.0, 0.5], [True, False], "row 0: score is -3"),
        ([0.5, NAN], [True, False], "row 1: score is nan"),
        ([0.5, math.inf], [True, False], "row 1: score is inf"),
        ([0.5, 0.5], [True], r"shape \(2,\) and labels \(1,\)"),
        ([[0.5, 0.5]], [[True, True]], "one-dimensional"),
        (0.5, True, "one-dimensional"),
        ([0.5, 0.5], [0, 2], "labels"),
        ([0.5, 0.5], ["yes", "no"], "labels"),
        (["high", "low"], [True, False], "numbers"),
    ],
)
def test_scores_and_labels_that_make_no_sense(make: Any, score: Any, right: Any, says: str) -> None:
    with pytest.raises(lvdet.InputError, match=says) as caught:
        make(np.array(score), np.array(right))
    assert "\n" not in str(caught.value)


# Of samples


@pytest.fixture(scope="module", params=["lvis", "coco"])
def samples(request: pytest.FixtureRequest) -> Samples:
    gt, dt = lvdet.simulate(images=60, classes=20, dets_per_image=50, style=request.param, seed=2)
    return read_samples(gt, dt)


def test_groups_and_classes_are_the_errors_of_their_rows(samples: Samples) -> None:
    found = reliability(samples)
    assert equal(found.overall, calibration_errors(samples.score, samples.right))
    category = samples.category
    assert len(found.by_class) == len(samples.categories)
    for row, errors in enumerate(found.by_class):
        here = category == row
        assert equal(errors, calibration_errors(samples.score[here], samples.right[here]))
    frequency = samples.categories.frequency[category]
    federated = bool(samples.categories.groups())
    assert list(found.by_frequency) == (["r", "c", "f"] if federated else [])
    for name, errors in found.by_frequency.items():
        here = frequency == name
        assert equal(errors, calibration_errors(samples.score[here], samples.right[here]))


def test_counts_add_up(samples: Samples) -> None:
    found = reliability(samples)
    assert sum(errors.count for errors in found.by_class) == len(samples)
    if found.by_frequency:
        assert sum(errors.count for errors in found.by_frequency.values()) == len(samples)


def test_a_calibrated_detector_is_found_to_be() -> None:
    """The simulated one is right as often as it says, at IoU 0.5."""
    gt, dt = lvdet.simulate(images=300, classes=20, dets_per_image=None, seed=1)
    good = lvdet.Calibrator("identity").measure(gt, dt, iou_threshold=0.5)
    assert good.errors.overall.expected < 0.02
    strict = lvdet.Calibrator("identity").measure(gt, dt, iou_threshold=0.9)
    assert strict.errors.overall.expected > 0.05


# measure_calibration


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    tables = lvdet.simulate(images=40, classes=14, dets_per_image=30, seed=4)
    return write_case(*tables, tmp_path_factory.mktemp("measure"))


def test_the_measurement_as_plain_values(files: tuple[Path, Path]) -> None:
    measured = lvdet.Calibrator("identity").measure(*files, iou_threshold=0.5, dets_per_class=50)
    samples = read_samples(*files, iou_threshold=0.5, dets_per_class=50)
    content = measured.to_dict()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content.keys() == {
        "all",
        "by_frequency",
        "by_class",
        "measures",
        "inputs",
        "warnings",
    }
    errors = calibration_errors(samples.score, samples.right)
    assert content["all"] == asdict(errors)
    assert list(content["by_frequency"]) == ["r", "c", "f"]
    assert [row["id"] for row in content["by_class"]] == samples.categories.ids.tolist()
    assert [row["name"] for row in content["by_class"]] == list(samples.categories.names)
    for row, line in enumerate(content["by_class"]):
        rows = samples.rows(row)
        errors = calibration_errors(samples.score[rows], samples.right[rows])
        for key, value in asdict(errors).items():
            assert line[key] == (None if math.isnan(value) else value)
    assert content["inputs"]["iou_threshold"] == 0.5
    assert content["inputs"]["dets_per_class"] == 50
    assert content["inputs"]["ground_truth"] == str(files[0])
    assert content["inputs"]["detection_count"] == 40 * 30


def test_a_class_without_detections_is_undefined(tmp_path: Path) -> None:
    from cli.small_set import pair

    measured = lvdet.Calibrator("identity").measure(*pair(tmp_path))
    cat, dog, hot_dog = measured.to_dict()["by_class"]
    assert cat["count"] == 1
    assert cat["expected"] == 0.5
    assert dog["brier"] == 0.75**2
    assert hot_dog == {
        "id": 9,
        "name": "hot dog",
        "count": 0,
        "expected": None,
        "maximum": None,
        "adaptive": None,
        "brier": None,
        "log_loss": None,
    }
    assert measured.to_dict()["by_frequency"]["f"]["expected"] is None


def test_the_measurement_as_text(tmp_path: Path) -> None:
    """The cat of 0.5 is right, the dog of 0.75 is wrong."""
    from cli.small_set import COCO, pair

    lines = str(lvdet.Calibrator("identity").measure(*pair(tmp_path))).splitlines()
    assert lines[0] == (
        "bbox: 2 detections on 2 images, 3 classes; 2 detections counted, correct at IoU 0.75"
    )
    assert lines[1] == ""
    assert lines[3].split() == ["detections", "ECE", "MCE", "adaptive", "Brier", "log", "loss"]
    of = {line.split()[0]: line.split()[1:] for line in lines[4:8]}
    assert list(of) == ["all", "rare", "common", "frequent"]
    # Brier and log loss are not shares: (0.25 + 0.5625) / 2, and ln 2 and ln 4.
    assert of["all"] == ["2", "62.50", "75.00", "62.50", "0.4062", f"{1.5 * math.log(2):.4f}"]
    assert of["rare"] == ["1", "50.00", "50.00", "50.00", "0.2500", f"{math.log(2):.4f}"]
    assert of["common"] == ["1", "75.00", "75.00", "75.00", "0.5625", f"{math.log(4):.4f}"]
    assert of["frequent"] == ["0", "–", "–", "–", "–", "–"]
    lines = str(lvdet.Calibrator("identity").measure(*pair(tmp_path, COCO))).splitlines()
    assert [line.split()[0] for line in lines[4:5]] == ["all"]
    # LaECE: |0.5 - 1| of the cat and 0.75 of the dog, each a class and a bin.
    assert lines[7:10] == [
        "           all  bins   IoU           budget  score  detections  classes",
        "    ECE  62.50    20  0.75      10000/class    all           2   pooled",
        "LaECE_0  62.50    25   any  100/image/class    all           2        2",
    ]


@pytest.mark.parametrize("threshold", [0, -0.5, 1.5, NAN, math.inf, "0.5", None])
def test_thresholds_that_make_no_sense(files: tuple[Path, Path], threshold: Any) -> None:
    with pytest.raises(lvdet.InputError, match="IoU threshold is"):
        lvdet.Calibrator("identity").measure(*files, iou_threshold=threshold)
    with pytest.raises(lvdet.InputError, match="IoU threshold is"):
        read_samples(*files, iou_threshold=threshold)


def test_scores_that_are_logits(tmp_path: Path) -> None:
    from cli.small_set import FOUND, LVIS, pair

    gt, dt = pair(tmp_path, LVIS, [FOUND[0] | {"score": 3.5}, FOUND[1]])
    with pytest.raises(lvdet.InputError, match=r"score is 3\.5, .* sigmoid"):
        lvdet.Calibrator("identity").measure(gt, dt)
