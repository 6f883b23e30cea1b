"""What is kept of a run is what lvdet's own functions say of its detections."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lvdet
from lvdet.experiments.conditions import PARTS
from lvdet.experiments.measuring import Predicted, measure
from lvdet.experiments.scale import read_scale

SCALE = replace(read_scale("synth"), dets_per_image=60, dets_per_class=40)
CONDITIONS = (
    "image=300",
    "image=1000",
    "class=10000",
    "class=10000,image=300",
    "classes=rc,image=300",
)
IMAGES, CLASSES = 120, 60
Measured = tuple[dict[str, Any], dict[str, Any], tuple[Path, Path, Path]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """Two detectors on one set, the first with everything."""
    folder = tmp_path_factory.mktemp("measuring")
    files = []
    for number, bias in enumerate((0.5, 1.5)):
        gt, dt = lvdet.simulate(
            images=IMAGES, classes=CLASSES, dets_per_image=None, class_bias=bias, seed=3
        )
        lvdet.write_ground_truth(gt, folder / "gt.json")
        lvdet.write_detections(dt, folder / f"dt{number}.json")
        files.append(folder / f"dt{number}.json")
    gt_file = folder / "gt.json"
    predicted = Predicted(gt_file, {0.5: files[0], 0.9: files[1]}, gt_file, files[1])
    other = Predicted(gt_file, {0.5: files[1]}, gt_file, None)
    first = measure(predicted, SCALE, PARTS, CONDITIONS)
    return first, measure(other, SCALE, (), ()), (gt_file, *files)


def close(found: dict[str, Any], name: str, expected: float) -> None:
    """A kept number is the expected one, to its digits; None where undefined."""
    value = found[name]
    assert (np.nan if value is None else value) == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_the_protocols(measured: Measured) -> None:
    first, _, (gt, *files) = measured
    for condition, file in (("own", files[0]), ("nms=0.5", files[0]), ("nms=0.9", files[1])):
        expected = lvdet.evaluate(gt, file, iou="bbox", dets_per_image=60, dets_per_class=40)
        for protocol, values in expected.items():
            for metric, value in values.items():
                close(first["measures"][condition], f"{protocol}.{metric}", value)
    classes = lvdet.evaluate(gt, files[0], iou="bbox", dets_per_class=40).per_class
    found = np.array(first["classes"]["fixed"], dtype=np.float64)
    np.testing.assert_allclose(found, classes["fixed.AP"], atol=5e-5)


@pytest.mark.parametrize(
    ("condition", "asked"),
    [
        ("image=300", {"dets_per_image": 60}),
        ("image=1000", {"dets_per_image": 200}),
        ("class=10000", {"dets_per_class": 40}),
        ("class=10000,image=300", {"dets_per_image": 60, "dets_per_class": 40}),
        ("classes=rc,image=300", {"dets_per_image": 60, "subsets": ["rc"]}),
    ],
)
def test_limits(measured: Measured, condition: str, asked: dict[str, Any]) -> None:
    first, _, (gt, file, _) = measured
    (row,) = lvdet.sweep(gt, file, iou="bbox", **asked).rows
    for name, value in row.metrics.items():
        close(first["measures"][condition], name, value)
    for name, value in row.pool.items():
        close(first["measures"][condition], f"pool.{name}", value)
    close(first["measures"][condition], "instances_per_class", row.instances_per_class)


def test_calibration(measured: Measured) -> None:
    first, _, (gt, file, train) = measured
    table = lvdet.calibrate(gt, file, train=(gt, train), iou="bbox", dets_per_class=40)
    compared = 0
    for block in table.blocks:
        rows = {"identity": block.uncalibrated, **block.rows}
        for method, row in rows.items():
            found = first["measures"][f"{block.name}:{method}"]
            for name, value in row.pool.items():
                close(found, f"pool.{name}", value)
                compared += 1
            for name, value in row.fixed.items():
                close(found, f"fixed.{name}", value)
    assert compared >= 2 * 7 * 4


def test_differences_on_samples_have_the_errors_of_compare(measured: Measured) -> None:
    """So a verdict's interval over images equals `lvdet compare`'s."""
    first, second, (gt, *files) = measured
    names, compared = ("AP", "APr", "APc", "APf"), 0
    found = lvdet.compare(
        gt, files, iou="bbox", dets_per_image=60, dets_per_class=40, resamples=200
    ).compared[0]
    for protocol, metrics in found.protocols.items():
        for name in names:
            key = f"{protocol}.{name}"
            drawn, other = (
                np.array(one["resamples"]["own"][key], dtype=np.float64) for one in (first, second)
            )
            assert len(drawn) == 200
            away = other - drawn - metrics[name].delta
            if np.count_nonzero(~np.isnan(away)) >= 2:
                error = np.sqrt(np.nanmean(away**2))
                assert error == pytest.approx(metrics[name].error, abs=1e-5)
                compared += 1
    assert compared >= 9


def test_samples_are_kept_of_what_claims_look_at(measured: Measured) -> None:
    first, *_ = measured
    assert {*first["resamples"]} >= {"own", "image=300", "nms=0.9", "train:platt"}
    assert {*first["resamples"]["train:platt"]} == {"pool.AP", "pool.APr"}
    observed = first["measures"]["class=10000,image=300"]["AP"]
    drawn = np.array(first["resamples"]["class=10000,image=300"]["AP"])
    assert drawn.min() < observed < drawn.max()
    assert first["resamples"]["nms=0.5"] == first["resamples"]["own"]


def test_examples_are_of_one_image(measured: Measured) -> None:
    first, _, (gt, file, _) = measured
    teaser, calibrated = first["examples"]["teaser"], first["examples"]["calibrated"]
    reranked = lvdet.rerank(gt, file, iou="bbox", dets_per_class=40, dets_per_image=60)
    accounts = {one.image_id: one for one in reranked.account()}
    right = {
        image: sum(item.outcome == "right" for item in one.added) for image, one in accounts.items()
    }
    assert right[teaser["image"]] == max(right.values())
    assert [one["class"] for one in teaser["added"]] == [
        item.name for item in accounts[teaser["image"]].added[:10]
    ]
    for side in ("before", "after"):
        scores = [one["score"] for one in calibrated[side]]
        assert len(scores) == 20
        assert scores == sorted(scores, reverse=True)
    right_ones = [
        sum(one["outcome"] == "right" for one in calibrated[side]) for side in ("before", "after")
    ]
    assert right_ones[1] >= right_ones[0]


def test_scores_are_in_units_of_frequent_classes(measured: Measured) -> None:
    first, *_ = measured
    assert first["measures"]["scores"]["f.mean"] == pytest.approx(1)
    low, high = (first["measures"]["scores"][f"r.{share}"] for share in ("0.25", "0.75"))
    assert low < high
