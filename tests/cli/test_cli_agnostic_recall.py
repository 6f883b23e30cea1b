"""`lvdet evaluate --agnostic-recall`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lvdet
from cli.run_lvdet import lvdet_call
from cli.small_set import pair


def test_as_the_library(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    out = tmp_path / "scores.json"
    done = lvdet_call("evaluate", gt, dt, "--agnostic-recall", "100, 1", "-o", out).good()
    result = lvdet.evaluate(gt, dt, agnostic_recall=[100, 1])
    content = json.loads(out.read_text())
    assert content["agnostic_recall"] == result.to_dict()["agnostic_recall"]
    assert [row["AR"] for row in content["agnostic_recall"]] == [0.5, 0.5]
    assert list(content)[2:4] == ["protocols", "agnostic_recall"]
    assert "Class-agnostic recall, in percent\n" in done.out
    assert done.out == f"{result}\n"


def test_alone(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    done = lvdet_call(
        "evaluate", gt, dt, "--protocols", "", "--agnostic-recall", "1000", "--errors"
    ).good()
    assert "1000/image" in done.out
    assert "AP-Old" not in done.out


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("all", "--agnostic-recall is 'all', expected integers"),
        ("", "--agnostic-recall is ''"),
        ("-3", "limit on detections is -3"),
    ],
)
def test_limits_that_make_no_sense(text: str, says: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    lvdet_call("evaluate", gt, dt, f"--agnostic-recall={text}").refused(says)
