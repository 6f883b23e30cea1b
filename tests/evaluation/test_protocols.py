"""Protocols, budgets, groups and subsets of classes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import lvdet
from oracles.cases import lvis_case
from oracles.lvis_reference import cut_per_image, evaluate_lvis
from tabled import assert_agree, read_case, write_case


@pytest.fixture(scope="module")
def simulated() -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    return lvdet.simulate(images=300, classes=200, dets_per_image=None, seed=5)


def test_budgets_stand_beside_the_numbers(simulated: tuple) -> None:
    result = lvdet.evaluate(*simulated, dets_per_image=50, dets_per_class=70)
    assert [result[name].budget for name in result] == ["50/image", "70/class", "70/class"]
    default = lvdet.evaluate(*simulated)
    assert [default[name].budget for name in default] == [
        "300/image",
        "10000/class",
        "10000/class",
    ]
    assert "10000/class" in str(default)


def test_protocols_are_worked_out_alone_as_together(simulated: tuple) -> None:
    together = lvdet.evaluate(*simulated, dets_per_image=40)
    for name in ("old", "fixed", "pool"):
        alone = lvdet.evaluate(*simulated, protocols=[name], dets_per_image=40)
        assert list(alone) == [name]
        assert alone[name].to_dict() == together[name].to_dict()


def test_frequency_groups_average_their_classes(simulated: tuple) -> None:
    gt, dt = simulated
    result = lvdet.evaluate(gt, dt)
    table = result.per_class
    for letter in "rcf":
        members = table["frequency"] == letter
        assert result["fixed"][f"AP{letter}"] == pytest.approx(
            np.nanmean(table["fixed.AP"][members]), abs=1e-12
        )
    assert pytest.approx(np.nanmean(table["fixed.AP"]), abs=1e-12) == result["fixed"].AP


def test_custom_groups_work_wherever_rcf_do(simulated: tuple) -> None:
    gt, dt = simulated
    rare = gt.categories.ids[gt.categories.frequency == "r"].tolist()
    names = [gt.categories.names[row] for row in np.flatnonzero(gt.categories.frequency == "f")]
    result = lvdet.evaluate(gt, dt, groups={"few": rare, "many": names})
    for protocol in ("old", "fixed", "pool"):
        assert result[protocol]["AP_few"] == result[protocol].APr
        assert result[protocol]["AP_many"] == result[protocol].APf


@pytest.mark.parametrize("letters", ["r", "cf", "rcf"])
def test_a_subset_is_evaluated_as_if_there_were_no_other_class(
    letters: str, tmp_path: Path
) -> None:
    """The image budget counts only the subset's detections, as in the paper's table of subsets."""
    for seed in range(60):
        annotations, results = lvis_case(seed, False, quirks=False)
        kept = [c["id"] for c in annotations["categories"] if c["frequency"] in letters]
        gt, dt = read_case(annotations, results, tmp_path)
        ours = lvdet.evaluate(gt, dt, classes=letters, dets_per_image=3, protocols=["old"])
        smaller = annotations | {
            "categories": [c for c in annotations["categories"] if c["id"] in kept],
            "annotations": [a for a in annotations["annotations"] if a["category_id"] in kept],
        }
        cut = cut_per_image([r for r in results if r["category_id"] in kept], 3)
        if not cut or not kept:
            continue
        reference = evaluate_lvis(smaller, cut, "bbox", -1)
        assert_agree(ours["old"], reference, f"seed {seed}, {letters}")


def test_pool_of_one_class_is_the_class(simulated: tuple) -> None:
    gt, dt = simulated
    name = gt.categories.names[0]
    result = lvdet.evaluate(gt, dt, classes=[name], dets_per_class=500)
    assert pytest.approx(result["fixed"].AP, abs=1e-12) == result["pool"].AP


def test_results_by_key_and_attribute(simulated: tuple) -> None:
    fixed = lvdet.evaluate(*simulated)["fixed"]
    assert fixed["APr"] == fixed.APr
    with pytest.raises(AttributeError, match="APx"):
        _ = fixed.APx
    with pytest.raises(KeyError):
        _ = fixed["APx"]


def test_undefined_is_nan_in_python_and_none_in_dicts(simulated: tuple) -> None:
    gt, dt = simulated
    result = lvdet.evaluate(gt, dt, classes="r")
    assert math.isnan(result["old"].APf)
    assert result.to_dict()["protocols"]["old"]["APf"] is None


def test_thresholds_of_ones_own(simulated: tuple) -> None:
    gt, dt = simulated
    usual = lvdet.evaluate(gt, dt)["fixed"]
    half = lvdet.evaluate(gt, dt, thresholds=[0.5])["fixed"]
    assert half.AP == half.AP50 == usual.AP50
    assert math.isnan(half.AP75)
    many = np.concatenate([[0.5], np.linspace(0.5, 0.95, 70), [0.75]])
    hundred = lvdet.evaluate(gt, dt, thresholds=many.tolist())["fixed"]
    assert hundred.AP75 == usual.AP75


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protocols": ["older"]}, "older"),
        ({"protocols": []}, "protocol"),
        ({"iou": "mask"}, "mask"),
        ({"iou": "segm"}, "masks"),
        ({"classes": ["no such class"]}, "no such class"),
        ({"classes": "no such"}, "'no such'"),
        ({"classes": 5}, "classes are 5"),
        ({"dets_per_image": 2.5}, "2.5"),
        ({"dets_per_class": 2**70}, str(2**70)),
        ({"thresholds": ["a"]}, "'a'"),
        ({"groups": {"g": [10**9]}}, "1000000000"),
        ({"groups": {"g": ["y"]}}, "no class named 'y'"),
        ({"thresholds": []}, "IoU thresholds"),
        ({"thresholds": [0.0]}, "IoU thresholds"),
        ({"thresholds": [0.5, 1.5]}, "1.5"),
        ({"thresholds": [float("nan")]}, "nan"),
        ({"dets_per_image": -1}, "-1"),
    ],
)
def test_bad_options_are_named(simulated: tuple, options: dict, message: str) -> None:
    with pytest.raises(lvdet.InputError, match=message):
        lvdet.evaluate(*simulated, **options)


def test_calibrated_detector_loses_at_the_image_budget_and_not_at_the_class_budget() -> None:
    """The paper's effect on a perfectly calibrated detector with a large vocabulary."""
    gt, dt = lvdet.simulate(images=300, classes=1203, dets_per_image=None, seed=0)
    result = lvdet.evaluate(gt, dt)
    assert result["fixed"].AP > result["old"].AP + 0.02
    assert result["fixed"].APr > result["old"].APr + 0.03


def test_a_group_is_a_subset_too(simulated: tuple) -> None:
    gt, dt = simulated
    rare = gt.categories.ids[gt.categories.frequency == "r"].tolist()
    named = lvdet.evaluate(gt, dt, classes="few", groups={"few": rare})
    assert named["old"].AP == lvdet.evaluate(gt, dt, classes="r")["old"].AP


def test_paths_are_read(simulated: tuple, tmp_path: Path) -> None:
    gt_path, dt_path = write_case(*simulated, tmp_path)
    read = lvdet.evaluate(gt_path, str(dt_path))
    assert read["old"].metrics == lvdet.evaluate(*simulated)["old"].metrics
    assert read.inputs["detections"] == str(dt_path)


@pytest.mark.parametrize("wrong", [None, 3, {"image_id": [1]}])
def test_what_is_no_table_is_said(simulated: tuple, wrong: object) -> None:
    with pytest.raises(lvdet.InputError):
        lvdet.evaluate(simulated[0], wrong)
    with pytest.raises(lvdet.InputError):
        lvdet.evaluate(wrong, simulated[1])
