"""Budgets of one's own beside the protocols, and presets in their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lvdet
from cli.run_lvdet import lvdet_call
from cli.small_set import COCO, pair
from lvdet.evaluation.presets import PRESETS
from lvdet.limits.budgets import describe, parse_budget
from oracles.cases import coco_case, lvis_case, without_boxes
from oracles.coco_reference import evaluate_coco, evaluate_coco_at
from oracles.lvis_reference import cut_per_class, cut_per_image, evaluate_lvis
from tabled import assert_agree, read_case

CHAIN = (lvdet.PerImage(40), lvdet.PerClass(7))
TEXT = "40/image,7/class"


@pytest.fixture(scope="module")
def simulated() -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    return lvdet.simulate(images=60, classes=80, dets_per_image=None, seed=5)


def test_a_chain_stands_beside_the_protocols(simulated: tuple) -> None:
    result = lvdet.evaluate(*simulated, budgets=[CHAIN, (lvdet.PerClass(9),), CHAIN])
    assert list(result) == ["old", "fixed", "pool", TEXT, "9/class"]
    assert result[TEXT].budget == TEXT
    alone = lvdet.evaluate(*simulated)
    for name in alone:
        assert result[name].to_dict() == alone[name].to_dict()
    same = lvdet.evaluate(*simulated, dets_per_class=9)["fixed"]
    assert result["9/class"].to_dict() == same.to_dict()
    assert f"{TEXT}.AP" in result.per_class
    names, budgets, *_ = result.table()
    assert (names[4], budgets[4]) == ("AP", TEXT)
    assert json.dumps(result.to_dict())


def test_the_order_of_limits_counts(simulated: tuple) -> None:
    chains = [CHAIN, CHAIN[::-1]]
    found = lvdet.evaluate(*simulated, budgets=chains)
    assert found[TEXT].AP != found["7/class,40/image"].AP


@pytest.mark.parametrize(
    "budgets",
    [[()], [lvdet.PerImage(3)], [("3/image",)], ["3/image"], [(lvdet.PerImage(3), "7/class")]],
)
def test_what_is_no_chain(simulated: tuple, budgets: Any) -> None:
    with pytest.raises(lvdet.InputError, match="expected a chain of limits"):
        lvdet.evaluate(*simulated, budgets=budgets)


def test_limits_are_checked_before_files_are_read() -> None:
    with pytest.raises(lvdet.InputError, match="limit on detections is -3"):
        lvdet.evaluate("no.json", "such.json", agnostic_recall=[100, -3])


def test_a_truncated_file_is_said_to_miss_detections_of_a_chain(truncated: tuple) -> None:
    chain = (lvdet.PerImage(1000), lvdet.PerClass(10_000))
    found = lvdet.evaluate(*truncated, budgets=[chain]).warnings[0]
    assert "AP-Pool and AP (1000/image,10000/class) miss" in found
    within = lvdet.evaluate(*truncated, budgets=[(lvdet.PerImage(300), chain[1])]).warnings[0]
    assert "AP (" not in within


def test_the_command_line(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    output = tmp_path / "scores.json"
    chains = ("--budget", "1000/image, 10000/class", "--budget", "1/image")
    done = lvdet_call("evaluate", gt, str(dt), *chains, "-o", output).good()
    scores = json.loads(output.read_text())["protocols"]
    assert list(scores) == ["old", "fixed", "pool", "1000/image,10000/class", "1/image"]
    for name in ("1000/image,10000/class", "1/image"):
        assert scores[name]["budget"] == name
        assert name in done.out
    bad = lvdet_call("evaluate", gt, str(dt), "--budget", "1,000/image")
    assert bad.code == 2
    assert bad.err.count("\n") == 1
    assert "budget is '1,000/image'" in bad.err


# Presets


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_what_it_applied(name: str, tmp_path: Path) -> None:
    one = PRESETS[name]
    assert describe(parse_budget(one.chain)) == one.chain
    annotations, results = (lvis_case if one.federated else coco_case)(3, True)
    gt, dt = read_case(annotations, results, tmp_path)
    result = lvdet.evaluate(gt, dt, like=name)
    assert list(result) == [name]
    assert result[name].budget == one.chain
    assert result.inputs["exact_lvis"] is True
    assert result.iou == (one.iou or "segm")
    like = result.to_dict()["like"]
    assert (like["name"], like["budget"]) == (name, one.chain)
    assert all(note in str(result) for note in like["notes"])
    assert (len(like["notes"]) == 2) == (name in ("glip", "mm-grounding-dino"))


@pytest.mark.parametrize("seed", range(40))
def test_presets_are_what_those_evaluators_compute(seed: int, tmp_path: Path) -> None:
    """lvis keeps `bbox`, so a detection's area is its box's; Detectron2 and YOLOE drop it."""
    annotations, results = lvis_case(70_000 + seed, True)
    gt, dt = read_case(annotations, results, tmp_path)

    def check(name: str, rows: list[dict[str, Any]], iou: str, max_dets: int) -> None:
        ours = lvdet.evaluate(gt, dt, like=name, iou=iou)[name]
        assert_agree(ours, evaluate_lvis(annotations, rows, iou, max_dets), f"{seed}, {name}")

    fixed = cut_per_class(results, 10_000)
    check("lvis", results, "segm", 300)
    check("lvis", results, "bbox", 300)
    check("detectron2", without_boxes(results), "segm", 300)
    check("detectron2", results, "bbox", 300)
    check("glip", fixed, "bbox", -1)
    check("mm-grounding-dino", fixed, "bbox", -1)
    check("yolo-world", cut_per_class(cut_per_image(results, 1000), 10_000), "bbox", -1)
    check("yoloe", without_boxes(fixed), "segm", -1)


@pytest.mark.parametrize("seed", range(20))
def test_presets_of_coco_files(seed: int, tmp_path: Path) -> None:
    annotations, results = coco_case(70_000 + seed, False)
    gt, dt = read_case(annotations, results, tmp_path)
    reference = evaluate_coco(annotations, results, "bbox")
    known = {name: reference[name] for name in reference if not name.startswith("AR1")}
    assert_agree(lvdet.evaluate(gt, dt, like="coco")["coco"], known, f"{seed}")
    reference = evaluate_coco_at(annotations, results, "bbox", 300)
    assert_agree(lvdet.evaluate(gt, dt, like="v3det")["v3det"], reference, f"{seed}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"like": "nobody"}, "unknown preset 'nobody', expected one of lvis, detectron2"),
        ({"like": "coco"}, "'coco' is for COCO annotations"),
        ({"like": "glip", "iou": "segm"}, "'glip' compares with iou bbox, not segm"),
        ({"like": "glip", "dets_per_class": 3}, "cannot be combined with protocols, budgets"),
        ({"like": "glip", "protocols": ["old"]}, "cannot be combined with protocols, budgets"),
        ({"like": "glip", "budgets": [CHAIN]}, "cannot be combined with protocols, budgets"),
        ({"like": "glip", "classes": "r"}, "cannot be combined with protocols, budgets"),
        ({"like": "glip", "exact_lvis": True}, "leave out thresholds and exact_lvis"),
    ],
)
def test_what_a_preset_refuses(simulated: tuple, options: Any, message: str) -> None:
    with pytest.raises(lvdet.InputError, match=message):
        lvdet.evaluate(*simulated, **options)


def test_presets_on_the_command_line(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    done = lvdet_call("evaluate", gt, str(dt), "--like", "glip").good()
    assert "AP (glip)" in done.out
    assert "Evaluated like GLIP: 10000/class, the quirks of lvis." in done.out
    assert "300 detections per image and group of 40 classes" in done.out
    gt, dt = pair(tmp_path, COCO)
    assert lvdet_call("evaluate", gt, str(dt), "--like", "glip").code == 2
    assert lvdet_call("evaluate", gt, str(dt), "--like", "coco", "--errors").code == 2
    lvdet_call("evaluate", gt, str(dt), "--like", "coco").good()
