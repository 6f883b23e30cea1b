"""`lvdet check`: every problem at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.run_lvdet import lvdet_call, lvdet_command
from cli.small_set import COCO, FOUND, LVIS, pair, save

WRONG = [
    FOUND[0] | {"score": "high"},
    FOUND[0],
    FOUND[0] | {"bbox": [1, 2, 3]},
    {"image_id": 1},
    FOUND[0] | {"category_id": 77},
]


@pytest.mark.parametrize("annotations", [LVIS, COCO])
def test_good_files(annotations: Any, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, annotations)
    assert lvdet_call("check", gt).good().out == f"{gt}: no problems found\n"
    output = tmp_path / "problems.json"
    done = lvdet_command("check", gt, dt, "--output", output).good()
    assert done.out == f"{gt} and {dt}: no problems found\n"
    assert done.err == ""
    assert json.loads(output.read_text()) == {"problems": [], "findings": []}


def test_every_problem_is_listed(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, LVIS, WRONG)
    done = lvdet_command("check", gt, dt, "--output", tmp_path / "problems.json")
    assert done.code == 2, done
    assert done.err == ""
    lines = done.out.splitlines()
    says = [
        "row 0, byte",
        "score is a string, expected a number",
        "row 2, byte",
        "bbox has 3 numbers, expected 4 [x, y, w, h]",
        "row 3, byte",
        "category_id is missing",
        "score is missing",
        "has neither bbox nor segmentation",
        "category_id 77 is not in",
    ]
    for words in says:
        assert any(words in line and str(dt) in line for line in lines), words
    count = len(lines) - 1
    assert count >= 6
    assert lines[-1] == f"{gt} and {dt}: {count} problems found"
    problems = json.loads((tmp_path / "problems.json").read_text())["problems"]
    assert len(problems) == count
    for problem in problems:
        assert set(problem) == {"source", "table", "row", "byte", "what"}
    first = problems[0]
    assert (first["source"], first["row"]) == (str(dt), 0)
    assert dt.read_text()[first["byte"] :].startswith('"high"')


def test_problems_of_both_files(tmp_path: Path) -> None:
    content = json.loads(json.dumps(LVIS))
    content["annotations"][0]["bbox"] = [1, 2, 3]
    content["annotations"][1]["area"] = "x"
    content["images"][0]["height"] = -1
    gt, dt = pair(tmp_path, content, "[{}]")
    done = lvdet_call("check", gt, dt)
    assert done.code == 2
    for place in ("annotation row 0", "annotation row 1", "image row 0"):
        assert f"{gt}, {place}, byte" in done.out
    assert f"{dt}, row 0, byte 1: image_id is missing" in done.out


def test_one_problem(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, LVIS, [FOUND[0] | {"image_id": 5}])
    done = lvdet_call("check", gt, dt)
    assert done.code == 2
    assert done.out == (
        f"{dt}, row 0: image_id 5 is not in {gt} (1 detection)\n{gt} and {dt}: 1 problem found\n"
    )


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    done = lvdet_call("check", tmp_path / "no.json", tmp_path / "none.json")
    assert done.code == 2
    assert "no.json: " in done.out
    assert "none.json: " in done.out
    assert "2 problems" in done.out
    assert lvdet_call("check", gt, dt).good()


def test_how_many_are_shown(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, LVIS, [FOUND[0] | {"score": None}] * 70)
    lines = lvdet_call("check", gt, dt).out.splitlines()
    assert len(lines) == 52
    assert lines[-2].startswith("… and 20 more")
    assert lines[-1].endswith("70 problems found")
    lines = lvdet_call("check", gt, dt, "--show", "3").out.splitlines()
    assert len(lines) == 5
    lines = lvdet_call("check", gt, dt, "--show", "100").out.splitlines()
    assert len(lines) == 71


def test_a_bad_number_of_threads_is_no_problem_of_the_file(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    lvdet_call("check", gt, dt, LVDET_THREADS="many").refused("LVDET_THREADS is 'many'")


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    done = lvdet_call("check", gt, dt, "--output", tmp_path / "nowhere" / "problems.json")
    done.refused("cannot write", code=1)


def test_damaged_text(tmp_path: Path) -> None:
    gt = save(tmp_path / "gt.json", json.dumps(LVIS)[:-50])
    done = lvdet_call("check", gt)
    assert done.code == 2
    assert "truncated" in done.out
    assert done.out.splitlines()[-1] == f"{gt}: 1 problem found"
