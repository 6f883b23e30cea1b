"""Bad input on the command line: exit code 2 and one line that says where.

All that may be wrong is tested with the readers; here, that every kind arrives.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.run_lvdet import lvdet_call, lvdet_command
from cli.small_set import FOUND, LVIS, Json, pair, save

TEXT = json.dumps(FOUND)

RESULTS: list[tuple[str, Any, list[str]]] = [
    ("cut off", TEXT[:-20], ["row 1, byte ", "truncated"]),
    ("object", json.dumps(LVIS), ["this is an annotation file"]),
    ("NaN", [FOUND[0] | {"score": float("nan")}], ["row 0, byte", "score is nan"]),
    ("unknown image", [FOUND[0] | {"image_id": 5}], ["row 0: image_id 5 is not in", "gt.json"]),
    ("only unknown classes", [FOUND[0] | {"category_id": 5}], ["none of its category ids (5)"]),
    ("deep", '[{"a":' + "[" * 100_000 + "]" * 100_000 + "}]", ["nested"]),
    ("binary", bytes(range(256)) * 20, ["dt.json, byte 0"]),
    (
        "size of a mask",
        [FOUND[0] | {"segmentation": {"size": [10, 10], "counts": [100]}}],
        ["mask is 10 x 10, but image 1 is 100 x 100"],
    ),
]


#: These in processes of their own, the others in calls.
REAL = {"cut off", "deep", "binary", "NaN", "unknown image", "results"}


@pytest.mark.parametrize(("name", "content", "says"), RESULTS, ids=[row[0] for row in RESULTS])
def test_results(name: str, content: Any, says: list[str], tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, LVIS, content)
    run = lvdet_command if name in REAL else lvdet_call
    run("evaluate", gt, dt).refused("dt.json", *says)


def changed(table: str, **values: Any) -> Json:
    content = json.loads(json.dumps(LVIS))
    content[table][1] |= values
    return content


ANNOTATIONS: list[tuple[str, Any, list[str]]] = [
    ("cut off", json.dumps(LVIS)[:-100], ["byte", "truncated"]),
    ("results", TEXT, ["this is a list, like a results file"]),
    ("image twice", changed("images", id=1), ["image row 1", "image id 1 occurs more than once"]),
    ("no image", changed("annotations", image_id=7), ["annotation row 1: image_id 7 is not in"]),
    ("deep", '{"images": [{"a":' + "[" * 100_000, ["nested"]),
]


@pytest.mark.parametrize(
    ("name", "content", "says"), ANNOTATIONS, ids=[row[0] for row in ANNOTATIONS]
)
def test_annotations(name: str, content: Any, says: list[str], tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, content)
    run = lvdet_command if name in REAL else lvdet_call
    run("evaluate", gt, dt).refused("gt.json", *says)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    lvdet_command("evaluate", tmp_path / "no.json", dt).refused("no.json: No such file")
    lvdet_call("evaluate", gt, tmp_path / "no.json").refused("no.json: no such file")
    lvdet_call("evaluate", gt, f"{tmp_path}/no*.json").refused("no*.json: no files match")
    lvdet_call("evaluate", tmp_path, dt).refused("Is a directory")
    (tmp_path / "none").mkdir()
    lvdet_call("evaluate", gt, tmp_path / "none").refused("none: the folder is empty")
    lvdet_call("evaluate", "", dt).refused()
    lvdet_call("evaluate", gt, "").refused()


def test_the_wrong_way_round(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    lvdet_call("evaluate", dt, gt).refused("like a results file, expected an annotation file")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--iou", "mask"], "iou is 'mask', expected one of bbox, segm, boundary"),
        (["--protocols", "new"], "unknown protocol 'new', expected any of old, fixed, pool"),
        (["--protocols", ""], "expected any of old, fixed, pool"),
        (["--dets-per-image", "-1"], "limit on detections is -1"),
        (["--dets-per-class", "-1"], "limit on detections is -1"),
    ],
)
def test_options(options: list[str], says: str, tmp_path: Path) -> None:
    lvdet_call("evaluate", *pair(tmp_path), *options).refused(says)


def test_nothing_is_written_for_bad_input(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, LVIS, [FOUND[0] | {"image_id": 5}])
    output = save(tmp_path / "scores.json", "as it was")
    lvdet_call("evaluate", gt, dt, "--output", output, "--class-table", tmp_path / "c").refused()
    assert output.read_text() == "as it was"
    assert {path.name for path in tmp_path.iterdir()} == {"gt.json", "dt.json", "scores.json"}
