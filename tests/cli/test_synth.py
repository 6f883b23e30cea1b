"""`lvdet synth` as a user runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from cli.run_lvdet import COMMAND, lvdet_call, lvdet_command

SMALL = ("--images", "40", "--classes", "12", "--size", "96", "--objects", "5")


def test_a_set_to_train_on(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    done = lvdet_command("synth", folder, *SMALL, "--summary", tmp_path / "made.json").good()
    assert done.err == ""
    lines = done.out.splitlines()
    made = json.loads((tmp_path / "made.json").read_text())
    train, val = made["train"], made["val"]
    assert (train["images"], val["images"]) == (40, 8)
    assert sum(train["classes"].values()) == made["classes"] == 12
    assert lines[0].startswith(f"train: 40 images, {train['objects']:,} objects of 12 classes (0 f")
    assert lines[1].startswith(f"val: 8 images, {val['objects']:,} objects of ")
    assert lines[-1] == f"next: lvdet train {folder / 'config.toml'}"
    for part in ("train", "val"):
        file = folder / "annotations" / f"{part}.json"
        assert "no problems found" in lvdet_call("check", file).good().out


def test_perfect_detections_have_an_ap_of_1(tmp_path: Path) -> None:
    lvdet_call("synth", tmp_path / "set", *SMALL, "--workers", "1").good()
    file = tmp_path / "set" / "annotations" / "val.json"
    found = json.loads(file.read_text())["annotations"]
    keys = ("image_id", "category_id", "bbox", "segmentation")
    results = [{key: one[key] for key in keys} | {"score": 0.5} for one in found]
    (tmp_path / "results.json").write_text(json.dumps(results))
    for iou in ("bbox", "segm"):
        scores = tmp_path / f"{iou}.json"
        lvdet_call(
            "evaluate", file, tmp_path / "results.json", "--iou", iou, "--output", scores
        ).good()
        result = json.loads(scores.read_text())
        values = [one["AP"] for one in _protocols(result)]
        assert values
        assert values == [pytest.approx(1.0)] * len(values)


def _protocols(result: object) -> list[dict[str, float]]:
    """Every table of scores in a result."""
    if isinstance(result, dict):
        here = [result] if isinstance(result.get("AP"), float) else []
        return here + [one for value in result.values() for one in _protocols(value)]
    if isinstance(result, list):
        return [one for value in result for one in _protocols(value)]
    return []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "DIR"),
        (["set", "--images", "many"], "--images"),
        (["set", "--images", "0"], "--images is "),
        (["set", "--val-images", "0"], "--val-images is "),
        (["set", "--classes", "1"], "--classes is "),
        (["set", "--classes", "99999"], "--classes is 99,999, expected 2 to 5,760"),
        (["set", "--size", "10"], "--size is "),
        (["set", "--objects", "0"], "--objects is "),
        (["set", "--objects", "nan"], "--objects is "),
        (["set", "--classes-per-image", "13"], "--classes-per-image is 13"),
        (
            ["set", "--images", "100", "--classes-per-image", "3"],
            "100 images of 3 classes have room",
        ),
        (["set", "--rarest", "0"], "--rarest is "),
        (["set", "--seed", "-1"], "--seed is "),
        (["set", "--workers", "0"], "--workers is "),
        (["set", "--images", "5"], "fewer --classes"),
        (["set", "--colour", "red"], "--colour"),
        (["set", "other"], "other"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lvdet_call("synth", *arguments).refused(says)
    assert not list(tmp_path.iterdir())


def test_a_set_is_not_overwritten_by_chance(tmp_path: Path) -> None:
    lvdet_call("synth", tmp_path / "set", *SMALL, "--workers", "1").good()
    lvdet_call("synth", tmp_path / "set", *SMALL).refused("--overwrite", str(tmp_path / "set"))
    lvdet_call("synth", tmp_path / "set", *SMALL, "--workers", "1", "--overwrite").good()
    target = tmp_path / "no" / "made.json"
    lvdet_call("synth", tmp_path / "b", *SMALL, "--summary", target).refused(str(target), code=1)
    assert not (tmp_path / "b").exists()


def test_an_interrupt_leaves_no_annotations_and_no_processes(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    process = subprocess.Popen(
        [COMMAND, "synth", folder, "--images", "20000", "--workers", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(folder.glob("train/*.jpg")):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "lvdet: error: interrupted\n")
    assert any(folder.glob("train/*.jpg"))
    assert not any(folder.glob("annotations/*"))
    assert _ended(process.pid)
    lvdet_call("synth", folder, *SMALL).refused("--overwrite")


def _ended(group: int) -> bool:
    """Whether the last process of the group is gone soon."""
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
