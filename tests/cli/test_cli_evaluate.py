"""`lvdet evaluate`: its JSON, its options, its warnings."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lvdet
from cli.run_lvdet import Done, lvdet_call, lvdet_command
from cli.small_set import COCO, FOUND, LVIS, Json, pair, save
from lvdet.files import collect
from oracles.cases import coco_case, lvis_case
from oracles.coco_reference import evaluate_coco
from oracles.lvis_reference import cut_per_class, evaluate_lvis
from oracles.pool_reference import evaluate_pool
from tabled import TOLERANCE, write_case

OLD = ["AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf", "AR", "ARs", "ARm", "ARl"]
POOL = ["AP", "AP50", "AP75", "APr", "APc", "APf"]
TIES = ["tie_low", "tie_high"]


def evaluate(
    folder: Path, gt: Path, dt: Path | str, *options: str, run: Any = lvdet_call
) -> tuple[Json, Done]:
    """The JSON that was written, and what was printed."""
    output = folder / "scores.json"
    done = run("evaluate", gt, str(dt), "--output", output, *options).good()
    return json.loads(output.read_text(encoding="utf-8")), done


def agree(ours: Json, reference: dict[str, float | None]) -> None:
    for name, expected in reference.items():
        if expected is None:
            assert ours[name] is None, name
        else:
            assert ours[name] == pytest.approx(expected, rel=0, abs=TOLERANCE), name


# What is written


def test_the_json_of_lvis(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    scores, done = evaluate(tmp_path, gt, dt, run=lvdet_command)
    assert list(scores) == ["lvdet", "schema", "protocols", "inputs", "warnings"]
    assert list(scores["protocols"]) == ["old", "fixed", "pool"]
    assert list(scores["protocols"]["old"]) == ["budget", *OLD, *TIES]
    assert list(scores["protocols"]["fixed"]) == ["budget", *OLD, *TIES]
    assert list(scores["protocols"]["pool"]) == ["budget", *POOL, *TIES]
    budgets = {name: result["budget"] for name, result in scores["protocols"].items()}
    assert budgets == {"old": "300/image", "fixed": "10000/class", "pool": "10000/class"}
    # The cat is found; the dog is not; the hot dog has no ground truth and is left out.
    for name in ("old", "fixed"):
        result = scores["protocols"][name]
        assert result["AP"] == pytest.approx(0.5)
        assert (result["APr"], result["APc"]) == (pytest.approx(1), 0)
        assert (result["APs"], result["APm"], result["APl"]) == (pytest.approx(1), 0, None)
        assert (result["AR"], result["ARs"], result["ARm"], result["ARl"]) == (0.5, 1, 0, None)
        assert result["APf"] is None
    # Of two, the wrong one stands first: precision 1/2 up to half recall.
    assert scores["protocols"]["pool"]["AP"] == pytest.approx(51 / 101 / 2)
    assert scores["protocols"]["pool"]["APf"] is None
    assert scores["warnings"] == []
    assert done.err == ""
    inputs = scores["inputs"]
    assert (inputs["ground_truth"], inputs["detections"]) == (str(gt), str(dt))
    assert (inputs["format"], inputs["iou"], inputs["exact_lvis"]) == ("lvis", "bbox", False)
    counts = [inputs[name] for name in ("images", "classes", "annotations", "detection_count")]
    assert counts == [2, 3, 2, 2]


def test_the_json_of_coco(tmp_path: Path) -> None:
    scores, _ = evaluate(tmp_path, *pair(tmp_path, COCO), run=lvdet_command)
    old = scores["protocols"]["old"]
    assert old["budget"] == "100/image/class"
    assert list(old) == ["budget", *OLD, "AR1", "AR10", "AR100", *TIES]
    assert [old[name] for name in ("AR1", "AR10", "AR100")] == [0.5] * 3
    assert [old[name] for name in ("APr", "APc", "APf")] == [None] * 3
    assert scores["protocols"]["fixed"]["budget"] == "10000/class"
    assert scores["inputs"]["format"] == "coco"


def test_the_table(tmp_path: Path) -> None:
    done = lvdet_command("evaluate", *pair(tmp_path)).good()
    lines = [line.split() for line in done.out.splitlines()]
    assert ["AP-Old", "AP-Fixed", "AP-Pool"] in lines
    assert ["300/image", "10000/class", "10000/class"] in lines
    assert ["AP", "50.00", "50.00", "25.25"] in lines
    assert ["APr", "100.00", "100.00", "100.00"] in lines
    assert not any(line[:1] == ["APf"] for line in lines)
    assert "bbox: 2 detections on 2 images, 3 classes" in done.out
    assert done.err == ""


@pytest.mark.parametrize("masks", [True, False])
def test_lvis_to_the_bit(masks: bool, tmp_path: Path) -> None:
    annotations, results = lvis_case(14, masks)
    gt, dt = pair(tmp_path, annotations, results)
    iou = "segm" if masks else "bbox"
    scores, _ = evaluate(tmp_path, gt, dt, "--exact-lvis", "--iou", iou)
    assert scores["inputs"]["exact_lvis"] is True
    assert scores["inputs"]["iou"] == iou
    agree(scores["protocols"]["old"], evaluate_lvis(annotations, results, iou))
    fixed = evaluate_lvis(annotations, cut_per_class(results, 10_000), iou, -1)
    agree(scores["protocols"]["fixed"], fixed)
    agree(scores["protocols"]["pool"], evaluate_pool(annotations, results, iou))


def test_coco_to_the_bit(tmp_path: Path) -> None:
    annotations, results = coco_case(2, True)
    scores, _ = evaluate(tmp_path, *pair(tmp_path, annotations, results), "--exact-lvis")
    agree(scores["protocols"]["old"], evaluate_coco(annotations, results, "segm"))


@pytest.mark.parametrize("content", ["[]", " [\n] "])
def test_no_detections(content: str, tmp_path: Path) -> None:
    for truth in (LVIS, COCO):
        scores, done = evaluate(tmp_path, *pair(tmp_path, truth, content))
        assert [result["AP"] for result in scores["protocols"].values()] == [0, 0, 0]
        assert done.err.startswith(f"warning: {tmp_path / 'dt.json'} has no detections")
        assert scores["warnings"] == [done.err.removeprefix("warning: ").strip()]


# Options


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("old", ["old"]),
        ("fixed,pool", ["fixed", "pool"]),
        (" pool , old ", ["pool", "old"]),
        ("pool,pool", ["pool"]),
    ],
)
def test_protocols(option: str, names: list[str], tmp_path: Path) -> None:
    scores, done = evaluate(tmp_path, *pair(tmp_path), "--protocols", option)
    assert list(scores["protocols"]) == names
    for name in ("Old", "Fixed", "Pool"):
        assert (f"AP-{name}" in done.out) == (name.lower() in names)


def test_budgets(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    scores, _ = evaluate(tmp_path, gt, dt, "--dets-per-image", "0", "--dets-per-class", "1234")
    budgets = [result["budget"] for result in scores["protocols"].values()]
    assert budgets == ["0/image", "1234/class", "1234/class"]
    assert [result["AP"] for result in scores["protocols"].values()][:2] == [
        0,
        pytest.approx(0.5),
    ]


@pytest.mark.parametrize(
    ("classes", "count", "ap"),
    [
        ("r", 2, 1),
        ("rc", 3, 0.5),
        ("c", 1, 0),
        ("f", 0, None),
        ("cat", 1, 1),
        ("hot dog", 1, None),
        ("dog,cat", 2, 0.5),
        ("4", 1, 0),
        ("3,hot dog", 2, 1),
    ],
)
def test_classes(classes: str, count: int, ap: float | None, tmp_path: Path) -> None:
    scores, _ = evaluate(tmp_path, *pair(tmp_path), "--classes", classes)
    assert scores["inputs"]["classes"] == count
    for name in ("old", "fixed"):
        found = scores["protocols"][name]["AP"]
        assert found is None if ap is None else found == pytest.approx(ap)


@pytest.mark.parametrize(
    ("classes", "says"),
    [
        ("fish", "no class named 'fish'"),
        ("cat,77", "no class named '77'"),
        ("x", "no class named 'x'"),
        ("--5", "no class named '--5'"),
    ],
)
def test_unknown_classes(classes: str, says: str, tmp_path: Path) -> None:
    lvdet_call("evaluate", *pair(tmp_path), f"--classes={classes}").refused(says)


def test_frequencies_of_a_file_without(tmp_path: Path) -> None:
    done = lvdet_call("evaluate", *pair(tmp_path, COCO), "--classes", "r")
    done.refused("have no 'frequency'")


def test_groups(tmp_path: Path) -> None:
    groups = save(tmp_path / "groups.json", {"base": ["cat", 4], "novel": ["dog"], "none": [9]})
    scores, done = evaluate(tmp_path, *pair(tmp_path), "--groups", str(groups))
    old, pool = scores["protocols"]["old"], scores["protocols"]["pool"]
    assert old["AP_base"] == pytest.approx(0.5)
    assert old["AP_novel"] == 0
    assert old["AP_none"] is None
    assert old["APr"] == pytest.approx(1)
    assert pool["AP_base"] == pytest.approx(51 / 101 / 2)
    assert pool["AP_novel"] == 0
    assert "AP_novel" in done.out
    scores, _ = evaluate(tmp_path, *pair(tmp_path, COCO), "--groups", str(groups))
    assert scores["protocols"]["fixed"]["AP_base"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[]", "expected an object that maps"),
        ('{"a": "cat"}', "expected an object that maps"),
        ('{"a": {"cat": 1}}', "expected an object that maps"),
        ('{"a": [1.5]}', "group 'a' contains 1.5"),
        ('{"a": [true]}', "group 'a' contains True"),
        ('{"a": [null]}', "group 'a' contains None"),
        ('{"a": ["fish"]}', "no class named 'fish'"),
        ('{"a": [77]}', "no class with id 77"),
        ("[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (None, "No such file"),
    ],
)
def test_groups_that_cannot_be(content: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "groups.json"
    if content is not None:
        save(path, content)
    lvdet_call("evaluate", *pair(tmp_path), "--groups", path).refused(says)


def test_per_class(tmp_path: Path) -> None:
    table = tmp_path / "classes.csv"
    evaluate(tmp_path, *pair(tmp_path), "--class-table", str(table))
    rows = list(csv.DictReader(io.StringIO(table.read_text(encoding="utf-8"))))
    assert [(row["id"], row["name"], row["frequency"], row["instances"]) for row in rows] == [
        ("3", "cat", "r", "1"),
        ("4", "dog", "c", "1"),
        ("9", "hot dog", "r", "0"),
    ]
    for protocol in ("old", "fixed"):
        assert float(rows[0][f"{protocol}.AP"]) == pytest.approx(1)
        assert float(rows[1][f"{protocol}.AP"]) == 0
        assert rows[2][f"{protocol}.AP"] == ""
        assert rows[0][f"{protocol}.APl"] == ""
        assert float(rows[0][f"{protocol}.AR"]) == 1


def test_per_class_of_some_with_odd_names(tmp_path: Path) -> None:
    content = json.loads(json.dumps(LVIS))
    names = ['a "b", c', "é\n猫", "=1+1"]
    for category, name in zip(content["categories"], names, strict=True):
        category["name"] = name
    table = tmp_path / "classes.csv"
    gt, dt = pair(tmp_path, content)
    evaluate(tmp_path, gt, dt, "--class-table", str(table), "--classes", "rc")
    with open(table, newline="", encoding="utf-8") as file:
        # An apostrophe before what a spreadsheet would take for a formula.
        assert [row["name"] for row in csv.DictReader(file)] == [*names[:2], "'=1+1"]
    evaluate(tmp_path, gt, dt, "--class-table", str(table), "--classes", "c")
    with open(table, newline="", encoding="utf-8") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["4"]


# Masks


def masked() -> tuple[Json, list[Json]]:
    """The cat's box is right and its mask is not; the dog the other way round."""
    content = json.loads(json.dumps(LVIS))
    square = [[10, 10, 30, 10, 30, 30, 10, 30]]
    large = [[40, 40, 90, 40, 90, 90, 40, 90]]
    content["annotations"][0]["segmentation"] = square
    content["annotations"][1]["segmentation"] = large
    found = [
        FOUND[0] | {"segmentation": [[60, 60, 70, 60, 70, 70]]},
        {"image_id": 1, "category_id": 4, "bbox": [0, 0, 1, 1], "score": 1, "segmentation": large},
    ]
    return content, found


def test_overlap_of_boxes_and_masks(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, *masked())
    for options, iou, cat, dog in (
        ([], "segm", 0, 1),
        (["--iou", "segm"], "segm", 0, 1),
        (["--iou", "boundary"], "boundary", 0, 1),
        (["--iou", "bbox"], "bbox", 1, 0),
    ):
        scores, done = evaluate(tmp_path, gt, dt, *options)
        assert scores["inputs"]["iou"] == iou
        assert done.out.startswith(f"{iou}: ")
        assert scores["protocols"]["old"]["APr"] == pytest.approx(cat)
        assert scores["protocols"]["old"]["APc"] == pytest.approx(dog)


def test_boxes_where_one_side_has_no_masks(tmp_path: Path) -> None:
    content, found = masked()
    scores, _ = evaluate(tmp_path, *pair(tmp_path, content, FOUND))
    assert scores["inputs"]["iou"] == "bbox"
    lvdet_call("evaluate", *pair(tmp_path, content, FOUND), "--iou", "segm").refused("no masks")
    lvdet_call("evaluate", *pair(tmp_path, LVIS, found), "--iou", "segm").refused("mask")


# Sources


def test_standard_input(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    expected = lvdet_call("evaluate", gt, dt).good().out
    for text in (json.dumps(FOUND), "\n".join(json.dumps(row) for row in FOUND)):
        done = lvdet_command("evaluate", gt, "-", input=text.encode()).good()
        assert done.out == expected
    lvdet_call("evaluate", gt, "-").refused("-, byte 0: the file is empty")
    lvdet_call("evaluate", gt, "-", input=b'[{"image_id": "x"}]').refused("-, row 0, byte 14")


def test_every_kind_of_file(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    expected = lvdet_call("evaluate", gt, dt).good().out
    columns = {name: [row[name] for row in FOUND] for name in FOUND[0]}
    pq.write_table(pa.table(columns), tmp_path / "r.parquet")
    np.savez(tmp_path / "r.npz", **columns)
    save(tmp_path / "r.jsonl.gz", gzip.compress(json.dumps(FOUND[0]).encode()))
    shards = tmp_path / "shards"
    shards.mkdir()
    for place, row in enumerate(FOUND):
        save(shards / f"{place}.jsonl", json.dumps(row))
    for source in ("r.parquet", "r.npz", "shards", "shards/*.jsonl"):
        assert lvdet_call("evaluate", gt, tmp_path / source).good().out == expected, source
    done = lvdet_call("evaluate", gt, tmp_path / "r.jsonl.gz").good()
    assert done.out.startswith("bbox: 1 detection on ")
    packed = save(tmp_path / "gt.json.gz", gzip.compress(gt.read_bytes()))
    assert lvdet_call("evaluate", packed, dt).good().out == expected


# Threads, warnings


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads(threads: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, *lvis_case(14, True))
    expected = lvdet_call("evaluate", gt, dt).good().out
    assert lvdet_call("evaluate", gt, dt, "--threads", threads).good().out == expected
    assert lvdet_call("evaluate", gt, dt, LVDET_THREADS=threads).good().out == expected


@pytest.mark.parametrize("threads", ["0", "-2", "many", "1.5"])
def test_a_number_of_threads_that_cannot_be(threads: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    lvdet_call("evaluate", gt, dt, LVDET_THREADS=threads).refused("threads", threads)
    lvdet_call("evaluate", gt, dt, f"--threads={threads}").refused("threads")


def cut_file(per_image: int, images: int) -> tuple[Json, list[Json]]:
    content = json.loads(json.dumps(LVIS))
    content["images"] = [content["images"][0] | {"id": number} for number in range(1, images + 1)]
    box = {"category_id": 3, "bbox": [1, 2, 3, 4]}
    rows = [
        box | {"image_id": image, "score": rank / per_image}
        for image in range(1, images + 1)
        for rank in range(per_image)
    ]
    return content, rows


def test_a_file_cut_at_300_an_image(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, *cut_file(300, 5))
    scores, done = evaluate(tmp_path, gt, dt, run=lvdet_command)
    assert len(scores["warnings"]) == 1
    assert f"{dt} is truncated at 300 detections per image" in scores["warnings"][0]
    assert "AP-Fixed and AP-Pool" in scores["warnings"][0]
    assert done.err == f"warning: {scores['warnings'][0]}\n"
    scores, done = evaluate(tmp_path, gt, dt, "--protocols", "old")
    assert (scores["warnings"], done.err) == ([], "")


def test_an_uncut_file(tmp_path: Path) -> None:
    content, rows = cut_file(301, 3)
    kept = [row for row in rows if row["score"] > 0.1 * row["image_id"]]
    _, done = evaluate(tmp_path, *pair(tmp_path, content, kept))
    assert done.err == ""


def test_an_unknown_class(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, LVIS, [*FOUND, FOUND[0] | {"category_id": 77}])
    scores, done = evaluate(tmp_path, gt, dt)
    assert "1 detections of classes that are not in" in scores["warnings"][0]
    assert done.err == f"warning: {scores['warnings'][0]}\n"
    assert scores["protocols"]["old"]["AP"] == pytest.approx(0.5)
    save(dt, [FOUND[0] | {"category_id": 77}])
    lvdet_call("evaluate", gt, dt).refused("none of its category ids (77) are in")


def test_an_annotation_of_id_0(tmp_path: Path) -> None:
    content = json.loads(json.dumps(LVIS))
    content["annotations"][0]["id"] = 0
    gt, dt = pair(tmp_path, content)
    scores, done = evaluate(tmp_path, gt, dt)
    assert "id 0" in done.err
    assert scores["protocols"]["old"]["APr"] == pytest.approx(1)
    exact, done = evaluate(tmp_path, gt, dt, "--exact-lvis")
    assert done.err == ""
    agree(exact["protocols"]["old"], evaluate_lvis(content, FOUND, "bbox"))
    assert exact["protocols"]["old"]["APr"] == 0


def test_errors_in_the_json_and_under_the_table(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    plain, printed = evaluate(tmp_path, gt, dt, run=lvdet_command)
    scores, done = evaluate(tmp_path, gt, dt, "--errors", run=lvdet_command)
    assert list(scores) == ["lvdet", "schema", "protocols", "inputs", "warnings", "errors"]
    errors = scores.pop("errors")
    assert scores == plain  # without the flag nothing is otherwise
    assert done.out.startswith(printed.out)
    assert done.err == ""
    assert (errors["metric"], errors["budget"]) == ("AP50", "10000/class")
    assert (errors["foreground_iou"], errors["background_iou"]) == (0.5, 0.1)
    assert errors["before"] == {"all": pytest.approx(0.5), "r": pytest.approx(1), "c": 0, "f": None}
    # What is taken for a dog in image 2, where there is none, is background; the dog is missed.
    counts = {name: kind["count"]["all"] for name, kind in errors["kinds"].items()}
    assert counts == {
        "classification": 0,
        "localisation": 0,
        "both": 0,
        "duplicate": 0,
        "background": 1,
        "missed": 1,
    }
    assert errors["kinds"]["background"]["cost"]["all"] == 0
    assert errors["kinds"]["missed"]["cost"]["all"] == pytest.approx(0.5)
    assert errors["kinds"]["missed"]["cost"]["c"] is None  # no dog is left to find
    assert list(errors["totals"]) == ["false positives", "false negatives"]
    assert (errors["confusion_pairs"], errors["confusions"]) == (0, [])
    lines = [line.split() for line in done.out.splitlines()]
    assert ["AP50", "before", "50.00", "100.00", "0.00", "–"] in lines
    assert ["background", "+0.00", "+0.00", "+0.00", "–", "1", "0", "1", "0"] in lines
    assert ["missed", "+50.00", "+0.00", "–", "–", "1", "0", "1", "0"] in lines


def test_errors_name_confusions(tmp_path: Path) -> None:
    row = {"image_id": 1, "category_id": 4, "bbox": [10, 10, 20, 20], "score": 0.25}
    gt, dt = pair(tmp_path, LVIS, [*FOUND, row])
    scores, done = evaluate(tmp_path, gt, dt, "--errors")
    assert scores["errors"]["confusions"] == [
        {
            "detected": {"id": 4, "name": "dog"},
            "actual": {"id": 3, "name": "cat"},
            "count": 1,
            "highest_score": 0.25,
            "score_sum": 0.25,
        }
    ]
    assert ["dog", "cat", "1", "0.250"] in [line.split() for line in done.out.splitlines()]


def test_errors_warn_of_their_own_budget(tmp_path: Path) -> None:
    """Cut results have an AP-Old, but errors are those of AP-Fixed."""
    paths = write_case(*lvdet.simulate(30, 20, seed=1, dets_per_image=40), tmp_path)
    options = ["--protocols", "old", "--dets-per-image", "40"]
    plain, done = evaluate(tmp_path, *paths, *options)
    assert plain["warnings"] == []
    scores, done = evaluate(tmp_path, *paths, *options, "--errors")
    (text,) = scores["warnings"]
    assert "AP-Fixed misses the dropped detections" in text
    assert text in done.err


def test_errors_print_no_name_that_does_more(tmp_path: Path) -> None:
    """Names of classes may hold anything, and a terminal obeys what is printed."""
    odd = ["\x1b[31mred", "two\nlines"]
    changed = json.loads(json.dumps(LVIS))
    for place, name in enumerate(odd):
        changed["categories"][place]["name"] = name
    changed["images"][0]["neg_category_ids"] = []
    found = [{"image_id": 1, "category_id": 4, "bbox": [10, 10, 20, 20], "score": 0.9}]
    _, done = evaluate(tmp_path, *pair(tmp_path, changed, found), "--errors")
    assert "two?lines  ?[31mred" in done.out


def test_errors_take_budgets_classes_and_groups(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    groups = save(tmp_path / "groups.json", {"pets": ["cat", "dog"]})
    options = ["--errors", "--dets-per-class", "7", "--groups", str(groups), "--classes", "pets"]
    errors = evaluate(tmp_path, gt, dt, *options, "--protocols", "old")[0]["errors"]
    assert errors["budget"] == "7/class"
    assert list(errors["before"]) == ["all", "r", "c", "f", "pets"]
    assert errors["kinds"]["missed"]["count"]["pets"] == 1


@pytest.mark.parametrize(("per_image", "per_class"), [(50, 1), (1, 50)])
@pytest.mark.parametrize("federated", [True, False])
def test_errors_change_no_number(
    federated: bool,
    per_image: int,
    per_class: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is read for both answers is enough for each, though either budget keeps less."""
    gt, dt = pair(tmp_path, *(lvis_case if federated else coco_case)(9, True, quirks=False))
    options = ["--dets-per-image", str(per_image), "--dets-per-class", str(per_class)]
    options += ["--protocols", "old"]
    whole = lvdet.diagnose(gt, lvdet.read_detections(dt), dets_per_class=per_class)
    monkeypatch.setattr(collect, "ROOM", 3)
    monkeypatch.setattr(collect, "ROOM_WITH_BOXES", 3)
    plain = evaluate(tmp_path, gt, dt, *options)[0]
    scores = evaluate(tmp_path, gt, dt, *options, "--errors")[0]
    errors = scores.pop("errors")
    assert scores == plain
    assert errors == whole.numbers()
    assert errors["totals"]["false positives"]["count"]["all"] > 0


def test_errors_of_standard_input(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    done = lvdet_command("evaluate", gt, "-", "--errors", input=dt.read_bytes()).good()
    assert "Errors at IoU 0.5 and 0.1: cost in points of AP50 (10000/class)" in done.out


def test_errors_are_not_those_of_lvis(tmp_path: Path) -> None:
    done = lvdet_call("evaluate", *pair(tmp_path), "--errors", "--exact-lvis")
    done.refused("--errors cannot be combined with --exact-lvis")
