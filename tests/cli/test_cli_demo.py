"""`lvdet demo`: the whole way on made-up data."""

from __future__ import annotations

import json
from pathlib import Path

import lvdet
from cli.run_lvdet import lvdet_call, lvdet_command
from cli.small_set import save


def test_demo(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "where"
    options = ["--images", "60", "--classes", "30"]
    done = lvdet_command("demo", folder, *options).good()
    gt = lvdet.read_ground_truth(folder / "annotations.json")
    dt = lvdet.read_detections(folder / "results.json")
    assert (len(gt.images), len(gt.categories)) == (60, 30)
    assert len(dt) > 60
    assert lvdet.check(folder / "annotations.json", folder / "results.json") == []
    scores = json.loads((folder / "scores.json").read_text())
    result = lvdet.evaluate(gt, dt)
    for name in ("old", "fixed", "pool"):
        assert scores["protocols"][name]["AP"] == result[name].AP
        assert 0 < scores["protocols"][name]["AP"] < 1
    swept = json.loads((folder / "sweep.json").read_text())
    assert {row["table"] for row in swept["rows"]} == {"image-limit", "subsets"}
    assert swept["rows"][1]["AP"] == result["old"].AP  # 300 per image
    page = (folder / "report.html").read_text()
    assert "<h1>results.json · reranked.json</h1>" in page
    assert done.out.endswith(f"next: open {folder / 'report.html'} in a browser\n")
    reranked = lvdet.evaluate(gt, folder / "reranked.json")
    assert f"{100 * reranked['old'].AP:.2f}" in page
    assert "AP-Fixed" in done.out
    assert "AP by detections per image" in done.out
    assert f"lvdet evaluate {folder / 'annotations.json'} {folder / 'results.json'}" in done.out
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    again = lvdet_call("demo", tmp_path / "again", *options).good()
    assert (tmp_path / "again" / "results.json").read_bytes() == (
        folder / "results.json"
    ).read_bytes()
    assert again.out.replace(str(tmp_path / "again"), str(folder)) == done.out
    lvdet_call("demo", tmp_path / "other", *options, "--seed", "1").good()
    other = (tmp_path / "other" / "results.json").read_bytes()
    assert other != (folder / "results.json").read_bytes()


def test_the_default_folder(tmp_path: Path) -> None:
    lvdet_command("demo", "--images", "1", "--classes", "3", cwd=tmp_path).good()
    assert (tmp_path / "lvdet-demo" / "scores.json").exists()


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    save(tmp_path / "file", "")
    done = lvdet_call("demo", tmp_path / "file" / "demo", "--images", "5")
    done.refused("cannot create folder", code=1)


def test_options_that_cannot_be(tmp_path: Path) -> None:
    for option in ("--images", "--classes"):
        done = lvdet_call("demo", tmp_path / "demo", option, "0")
        assert done.code == 2, done
        assert done.err.startswith("lvdet: error: ")
        assert done.err.count("\n") == 1
