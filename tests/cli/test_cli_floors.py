"""Numbers that continuous integration holds a detector to, and which files they are of."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

import pytest

import lvdet
from cli.run_lvdet import lvdet_call, lvdet_command
from cli.small_set import FOUND, LVIS, pair, save
from lvdet.files import content_hash


@pytest.mark.parametrize(
    ("floors", "code", "said"),
    [
        (["AP=0.5"], 0, ""),
        (["AP=0.51"], 3, "failed: fixed.AP is 0.5, below 0.51"),
        (["pool.AP=0.3"], 3, "failed: pool.AP is 0.252475, below 0.3"),
        (["old.APr=1", "AP50=0.5"], 0, ""),
        (["APf=0"], 3, "failed: fixed.APf is undefined, below 0"),
        (["300/image.AP=0.9"], 3, "failed: 300/image.AP is 0.5, below 0.9"),
        (["APx=0.1"], 2, "expected one of AP, AP50"),
        (["new.AP=0.1"], 2, "expected one of old, fixed, pool"),
        (["AP"], 2, "expected a metric and a fraction such as AP=0.3"),
        (["AP=30"], 2, "expected a metric and a fraction such as AP=0.3"),
        (["AP=nan"], 2, "expected a metric and a fraction such as AP=0.3"),
    ],
)
def test_fail_under(floors: list[str], code: int, said: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    options = [part for floor in floors for part in ("--fail-under", floor)]
    done = lvdet_call("evaluate", gt, str(dt), "--budget", "300/image", *options)
    assert done.code == code
    assert said in done.err


def test_the_process_ends_with_that_code_and_writes_its_output(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    output = tmp_path / "scores.json"
    done = lvdet_command("evaluate", gt, dt, "--fail-under", "AP=0.9", "-o", output)
    assert done.code == 3
    assert json.loads(output.read_text())["protocols"]["fixed"]["AP"] == pytest.approx(0.5)


def test_the_only_protocol_needs_no_name(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    options = ("--protocols", "pool", "--fail-under", "AP=0.3")
    assert "pool.AP is 0.25" in lvdet_call("evaluate", gt, str(dt), *options).err
    assert lvdet_call("evaluate", gt, str(dt), "--like", "lvis", "--fail-under", "AP=0.9").code == 3


def test_fail_on_regression(tmp_path: Path) -> None:
    gt, dt = lvdet.simulate(images=80, classes=10, objects_per_image=6, seed=1)
    lvdet.write_ground_truth(gt, tmp_path / "gt.json")
    lvdet.write_detections(dt, tmp_path / "good.json")
    lvdet.write_detections(dt.with_scores(dt.score[::-1].copy()), tmp_path / "bad.json")
    paths = (tmp_path / "gt.json", str(tmp_path / "good.json"), str(tmp_path / "bad.json"))
    options = ("--resamples", "100")
    worse = lvdet_call("compare", *paths, *options, "--fail-on-regression")
    assert worse.code == 3
    assert "failed: bad.json is worse than good.json by " in worse.err
    assert "in AP-Fixed" in worse.err
    assert lvdet_call("compare", *paths, *options).code == 0
    better = (paths[0], paths[2], paths[1])
    assert lvdet_call("compare", *better, *options, "--fail-on-regression").code == 0


def test_the_output_says_what_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gt, dt = pair(tmp_path)

    def found() -> dict:
        lvdet_call("evaluate", gt, str(dt), "-o", tmp_path / "scores.json").good()
        return json.loads((tmp_path / "scores.json").read_text())

    before = found()
    assert (before["lvdet"], before["schema"]) == (lvdet.__version__, 1)
    assert before["inputs"]["files"] == [
        {
            "path": str(path),
            "bytes": path.stat().st_size,
            "hash": f"blake2b:{blake2b(path.read_bytes(), digest_size=16).hexdigest()}",
        }
        for path in (gt, dt)
    ]
    save(dt, [FOUND[0] | {"score": 0.6}, FOUND[1]])
    after = found()["inputs"]["files"]
    assert after[0] == before["inputs"]["files"][0]
    assert after[1]["hash"] != before["inputs"]["files"][1]["hash"]
    table = lvdet.evaluate(*(lvdet.read_ground_truth(gt), lvdet.read_detections(dt)))
    assert table.inputs["files"] == []
    monkeypatch.setattr(content_hash, "WHOLE", 10)
    monkeypatch.setattr(content_hash, "_BLOCK", 4)
    save(gt, LVIS)
    sampled = found()["inputs"]["files"]
    assert sampled[0]["hash"].startswith("blake2b-sampled:")
    dt.write_bytes(dt.read_bytes() + b"\n")
    assert found()["inputs"]["files"][1]["hash"] != sampled[1]["hash"]
