"""`lvdet compare`: tables and sentences on the terminal and in files."""

from __future__ import annotations

import csv
import json
import signal
import time
from pathlib import Path

import pytest

import lvdet
from cli.run_lvdet import lvdet_call, lvdet_command, lvdet_started
from cli.small_set import COCO, FOUND, LVIS, pair, save

FEW = ("--resamples", "100")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("compare")
    for name, localisation in (("a", 0.3), ("b", 0.9)):
        gt, dt = lvdet.simulate(60, 10, dets_per_image=50, localisation=localisation, seed=5)
        lvdet.write_detections(dt, folder / f"{name}.json")
    lvdet.write_ground_truth(gt, folder / "gt.json")
    return folder / "gt.json", folder / "a.json", folder / "b.json"


def test_what_is_printed(files: tuple[Path, Path, Path]) -> None:
    done = lvdet_command("compare", *files, *FEW, "--dets-per-image", "20").good()
    assert "bbox: 2 detectors on 60 images, 10 classes; 100 bootstrap samples" in done.out
    for words in ("20/image", "10000/class", "95% interval", "b.json compared with a.json", "APr"):
        assert words in done.out
    assert "\nAP-Fixed (10000/class): b.json is better than a.json: +" in done.out
    said = (
        "\nThe gain of b.json holds under both AP-Old and AP-Fixed, and is larger under AP-Fixed: +"
    )
    assert said in done.out
    assert "fewer than 10 images" in done.err
    assert all(line.startswith("warning: ") for line in done.err.splitlines())


def test_files_by_their_endings(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    targets = [tmp_path / f"out.{ending}" for ending in ("json", "csv", "md", "TEX")]
    outputs = [part for path in targets for part in ("--output", path)]
    options = ("--confidence", "0.9", "--seed", "3", "--dets-per-class", "30", "--threads", "1")
    done = lvdet_call("compare", *files, files[1], *FEW, *options, *outputs).good()
    content = json.loads(targets[0].read_text())
    result = lvdet.compare(
        files[0], [*files[1:], files[1]], resamples=100, confidence=0.9, seed=3, dets_per_class=30
    )
    assert content == result.to_dict()
    assert (content["seed"], content["confidence"], content["resamples"]) == (3, 0.9, 100)
    assert [one["detector"] for one in content["comparisons"]] == ["b.json", "a.json (2)"]
    assert content["comparisons"][1]["protocols"]["old"]["AP"]["delta"] == 0
    assert "90% interval" in done.out
    lines = list(csv.DictReader(targets[1].read_text().splitlines()))
    assert {line["detector"] for line in lines} == {"b.json", "a.json (2)"}
    assert "### b.json compared with a.json" in targets[2].read_text()
    assert "- The gain of b.json" in targets[2].read_text()
    assert r"\begin{tabular}" in targets[3].read_text()


def test_how_many_classes_are_shown(files: tuple[Path, Path, Path]) -> None:
    none = lvdet_call("compare", *files, *FEW, "--classes-shown", "0").good()
    two = lvdet_call("compare", *files, *FEW, "--classes-shown", "2").good()
    assert "class_00" not in none.out
    assert two.out.count("class_00") == 2


def test_coco_files(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, COCO)
    other = save(tmp_path / "other.json", FOUND[:1])
    done = lvdet_call("compare", gt, dt, other, *FEW, "--output", tmp_path / "o.json").good()
    assert "100/image/class" in done.out
    assert "APr" not in done.out
    content = json.loads((tmp_path / "o.json").read_text())
    assert content["comparisons"][0]["protocols"]["old"]["APr"]["value"] is None


def test_no_results_and_equal_names(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, LVIS)
    (tmp_path / "sub").mkdir()
    empty = save(tmp_path / "sub" / "dt.json", [])
    done = lvdet_call("compare", gt, dt, empty, *FEW).good()
    assert "sub/dt.json compared with " in done.out
    assert "has no detections" in done.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--resamples", "99"], "resamples is 99, expected at least 100"),
        (["--confidence", "1"], "confidence is 1.0"),
        (["--seed", "-1"], "seed is -1"),
        (["--iou", "mask"], "iou is 'mask'"),
        (["--dets-per-class", "-3"], "limit on detections is -3"),
        (["--classes-shown", "-1"], "--classes-shown is -1"),
        (["--output", "out.html"], "unknown extension '.html'"),
        (["--exact"], "--exact"),
    ],
)
def test_refused(files: tuple[Path, Path, Path], options: list[str], says: str) -> None:
    lvdet_call("compare", *files, *options).refused(says)


def test_one_detector_is_refused(files: tuple[Path, Path, Path]) -> None:
    lvdet_call("compare", *files[:2]).refused("1 results to compare, expected at least 2")


def test_a_missing_file(files: tuple[Path, Path, Path]) -> None:
    lvdet_call("compare", *files, "nowhere.json").refused("nowhere.json")


def test_a_file_name_that_moves_the_cursor(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    odd = save(tmp_path / "\x1b[2J[red]x.json", FOUND)
    done = lvdet_call("compare", gt, dt, odd, *FEW)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert "?[2J[red]x.json" in done.out


def test_interrupted_while_it_draws(files: tuple[Path, Path, Path]) -> None:
    with lvdet_started("compare", *files, "--resamples", "1000000") as process:
        assert process.stderr is not None
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        process.wait(20)
        assert process.stderr.read() in (b"", b"lvdet: error: interrupted\n")
    assert process.returncode == 130
