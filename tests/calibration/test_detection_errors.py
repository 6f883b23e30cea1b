"""LaECE, LaACE, D-ECE and optimal LRP against their formulas."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lvdet
from cli.small_set import COCO, FOUND, LVIS, pair
from lvdet.calibration.detection_errors import binned_gap
from oracles.cases import coco_case, lvis_case
from oracles.localisation_reference import (
    ece_slow,
    laace_slow,
    laece_slow,
    lrp_slow,
    rows_slow,
)
from oracles.lvis_reference import cut_per_image, drop_unknown
from tabled import read_case

Json = dict[str, Any]
AGREE = {"rel": 0, "abs": 1e-12, "nan_ok": True}


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def check(annotations: Json, results: list[Json], iou: str, tau: float, folder: Path) -> int:
    """All errors, under a limit that drops detections; returns how many classes had a threshold."""
    known = drop_unknown(annotations, results)
    if not known:
        return 0
    gt, dt = read_case(annotations, results, folder)
    cut = cut_per_image(known, 6)
    rows, objects = rows_slow(annotations, cut, iou, tau)
    measured = lvdet.Calibrator("identity").measure(
        gt, dt, iou=iou, laece_iou_threshold=tau, dets_per_image=6
    )
    _, laece, laace, dece = measured.measures
    defined = [one for one in rows if objects[one]]
    by_class = dict(
        zip(
            gt.categories.ids.tolist(),
            zip(laece.by_class, laace.by_class, strict=True),
            strict=True,
        )
    )
    for one, values in by_class.items():
        expected = (
            (laece_slow(rows[one]), laace_slow(rows[one])) if one in defined else (math.nan,) * 2
        )
        assert values == pytest.approx(expected, **AGREE)
    assert laece.value == pytest.approx(mean([laece_slow(rows[one]) for one in defined]), **AGREE)
    assert laace.value == pytest.approx(mean([laace_slow(rows[one]) for one in defined]), **AGREE)
    assert laece.detections == sum(map(len, rows.values()))
    assert laece.classes == len(defined)
    sure = [
        (score, float(right))
        for some in rows_slow(annotations, cut, iou, 0.5)[0].values()
        for score, right, _ in some
        if score >= 0.3
    ]
    assert dece.value == pytest.approx(ece_slow(sure, 10) if sure else math.nan, **AGREE)
    assert dece.detections == len(sure)

    chosen = lvdet.find_thresholds(gt, dt, iou=iou, iou_threshold=tau, dets_per_image=6)
    for row in chosen.rows():
        one = row["id"]
        names = ("threshold", "oLRP", "oLRP_loc", "oLRP_fp", "oLRP_fn")
        expected_row = (math.nan,) * 5
        if objects[one]:
            expected_row = lrp_slow(rows.get(one, []), objects[one], tau)
        assert [row[name] for name in names] == pytest.approx(expected_row, **AGREE)
        assert row["objects"] == objects[one]
    return sum(not math.isnan(row["threshold"]) for row in chosen.rows())


@pytest.mark.parametrize("tau", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("masks", [False, True], ids=["bbox", "segm"])
@pytest.mark.parametrize("case", [lvis_case, coco_case])
def test_random_files(case: Any, masks: bool, tau: float, tmp_path: Path) -> None:
    iou = "segm" if masks else "bbox"
    assert sum(check(*case(seed, masks), iou, tau, tmp_path) for seed in range(12)) > 8


def test_a_score_at_an_edge_is_in_the_bin_below() -> None:
    """As the formula's (a, b]: 0.28 is 7/25, though 7 · 0.04 is a hair more."""
    rng = np.random.default_rng(3)
    score = np.round(rng.random(400), 2)
    target = rng.random(400)
    for bins in (25, 10):
        expected = ece_slow(list(zip(score.tolist(), target.tolist(), strict=True)), bins)
        assert binned_gap(score, target, bins) == pytest.approx(expected, abs=1e-12)


def test_numbers_say_what_they_were_computed_under(tmp_path: Path) -> None:
    """The cat of 0.5 is right; the dog of 0.75 is not, and the other dog is missed."""
    content = lvdet.Calibrator("identity").measure(*pair(tmp_path)).to_dict()
    ece, laece, laace, dece = content["measures"]
    under = ("name", "bins", "iou_threshold", "budget", "minimum_score", "classes", "detections")
    assert [ece[key] for key in under] == ["ECE", 20, 0.75, "10000/class", None, None, 2]
    assert [laece[key] for key in under] == ["LaECE_0", 25, 0.0, "300/image", None, 2, 2]
    assert [laace[key] for key in under] == ["LaACE_0", None, 0.0, "300/image", None, 2, 2]
    assert [dece[key] for key in under] == ["D-ECE", 10, 0.5, "300/image", 0.3, None, 2]
    assert ece["value"] == content["all"]["expected"]
    assert laece["value"] == laace["value"] == (0.5 + 0.75) / 2
    assert laece["by_class"] == {"3": 0.5, "4": 0.75, "9": None}
    assert laece["by_frequency"] == {"r": 0.5, "c": 0.75, "f": None}
    assert dece["value"] == (0.5 + 0.75) / 2
    assert lvdet.Calibrator("identity").measure(*pair(tmp_path, COCO)).measures[1].budget == (
        "100/image/class"
    )


def test_a_class_without_an_error_counts(tmp_path: Path) -> None:
    """A mean that leaves it out says that all classes are as bad as the others."""
    gt, dt = pair(tmp_path, LVIS, [FOUND[0] | {"score": 1.0}, FOUND[1]])
    assert lvdet.Calibrator("identity").measure(gt, dt).measures[2].value == 0.75 / 2


def test_what_overlaps_nothing_takes_no_object(tmp_path: Path) -> None:
    """And is left out where its class was not annotated exhaustively."""
    annotations = json.loads(json.dumps(LVIS))
    annotations["images"][0]["not_exhaustive_category_ids"] = [3]
    results = [FOUND[0], FOUND[0] | {"bbox": [70, 70, 5, 5], "score": 0.9}]
    _, _, laace, _ = (
        lvdet.Calibrator("identity").measure(*pair(tmp_path, annotations, results)).measures
    )
    assert laace.detections == 1
    assert laace.by_class is not None
    assert laace.by_class[0] == 0.5


@pytest.mark.parametrize("ending", [".json", ".csv", ""])
def test_thresholds_come_before_the_limit(ending: str, tmp_path: Path) -> None:
    """The cat's threshold is 0.5, the dog has none; what they take away makes room."""
    chosen = lvdet.find_thresholds(*pair(tmp_path))
    assert math.isnan(chosen.by_class[4])
    assert chosen.by_class[3] == 0.5
    source: Any = chosen
    if ending:
        source = tmp_path / f"thresholds{ending}"
        chosen.save(source)
    results = [FOUND[0] | {"score": 0.49}, FOUND[0], FOUND[1] | {"image_id": 1, "score": 0.01}]
    gt, dt = pair(tmp_path, LVIS, results)
    of = {
        limit: lvdet.Calibrator("identity")
        .measure(gt, dt, thresholds=source, dets_per_image=limit)
        .measures[1]
        for limit in (1, 2, 3)
    }
    assert [of[limit].detections for limit in (1, 2, 3)] == [1, 2, 2]
    assert of[3].thresholds == (
        f"thresholds of {tmp_path / 'dt.json'}" if not ending else str(source)
    )


def test_thresholds_as_tables(tmp_path: Path) -> None:
    chosen = lvdet.find_thresholds(*pair(tmp_path))
    content = chosen.to_dict()
    assert content["lvdet_thresholds"] == 1
    cat, dog, hot_dog = content["classes"]
    assert cat == {
        "id": 3,
        "name": "cat",
        "frequency": "r",
        "threshold": 0.5,
        "oLRP": 0.0,
        "oLRP_loc": 0.0,
        "oLRP_fp": 0.0,
        "oLRP_fn": 0.0,
        "objects": 1,
        "detections": 1,
    }
    assert (dog["threshold"], dog["oLRP"], dog["oLRP_fn"], dog["oLRP_loc"]) == (None, 1, 1, None)
    assert (hot_dog["oLRP"], hot_dog["objects"], hot_dog["detections"]) == (None, 0, 0)
    assert content["mean"]["all"] == {"oLRP": 0.5, "oLRP_loc": 0, "oLRP_fp": 0, "oLRP_fn": 0.5}
    assert content["inputs"]["budget"] == "300/image"
    assert chosen.to_csv().splitlines()[1:3] == [
        "3,cat,r,0.5,0.0,0.0,0.0,0.0,1,1",
        "4,dog,c,,1.0,,,1.0,1,0",
    ]
    assert "hot dog" in chosen.to_markdown()
    assert "hot dog" in chosen.to_latex()
    assert str(chosen).startswith("bbox: 2 detections on 2 images, 3 classes; thresholds for 1")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.json", "{", "invalid thresholds file"),
        ("t.json", "[]", "'lvdet_thresholds' is missing"),
        ("t.json", '{"lvdet_thresholds": 2}', "its version is 2"),
        ("t.json", '{"lvdet_thresholds": 1}', "'classes' is not a list"),
        ("t.json", '{"lvdet_thresholds": 1, "classes": [3]}', "class 0 has no 'threshold'"),
        (
            "t.json",
            '{"lvdet_thresholds": 1, "classes": [{"id": 1, "threshold": NaN}]}',
            "threshold is nan, expected a number or null",
        ),
        ("t.csv", "id,score\n1,2\n", "lacks the columns 'id' and 'threshold'"),
        ("t.csv", "id,threshold\n1,0.5\n1,0.5\n", "class 1: id is 1, expected a distinct integer"),
        (
            "t.json",
            '{"lvdet_thresholds": 1, "classes": [{"id": 1, "threshold": 1%s}]}' % ("0" * 400),
            "invalid thresholds file: int too large",
        ),
        ("t.csv", "id,threshold\nx,0.5\n", "invalid thresholds file"),
        ("t.csv", "threshold,id\n0.5\n", "invalid thresholds file"),
        ("t.csv", "id,threshold\n" + "1" * 200_000, "invalid thresholds file: field larger"),
        ("t.txt", "", "unknown extension"),
    ],
)
def test_files_that_are_no_thresholds(name: str, content: str, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(lvdet.InputError, match=says):
        lvdet.Calibrator("identity").measure(*pair(tmp_path), thresholds=tmp_path / name)


@pytest.mark.parametrize("tau", [-0.1, 1.0, math.nan, "0.5", True])
def test_levels_that_make_no_sense(tau: Any, tmp_path: Path) -> None:
    with pytest.raises(lvdet.InputError, match="IoU threshold is"):
        lvdet.find_thresholds(*pair(tmp_path), iou_threshold=tau)
    with pytest.raises(lvdet.InputError, match="IoU threshold is"):
        lvdet.Calibrator("identity").measure(*pair(tmp_path), laece_iou_threshold=tau)
