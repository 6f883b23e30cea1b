"""`lvdet sweep`: tables on the terminal and in files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

import lvdet
from cli.run_lvdet import lvdet_call, lvdet_command
from cli.small_set import COCO, pair
from tabled import write_case


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    tables = lvdet.simulate(images=20, classes=40, dets_per_image=None, seed=5)
    return write_case(*tables, tmp_path_factory.mktemp("sweep"))


def test_all_tables_by_default(files: tuple[Path, Path], tmp_path: Path) -> None:
    done = lvdet_command("sweep", *files, "--output", tmp_path / "out.json").good()
    assert done.err == ""
    for name in ("ranking", "image-limit", "subsets", "class-limit", "pool-limit"):
        assert f"({name})" in done.out
    content = json.loads((tmp_path / "out.json").read_text())
    assert len(content["rows"]) == 32
    named = lvdet_call("sweep", *files, "--paper", "all").good()
    assert named.out == done.out


def test_labels_of_the_paper_are_names_too(files: tuple[Path, Path]) -> None:
    by_name = lvdet_call("sweep", *files, "--paper", "ranking,class-limit").good()
    labels = "tab:artificially_limit_dets_per_class,dets_per_cat"
    assert lvdet_call("sweep", *files, "--paper", labels).good() == by_name
    toy = lvdet_call("sweep", "--paper", "fig:balance_calib").good()
    assert toy == lvdet_call("sweep", "--paper", "toy")


def test_a_grid(files: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    limits = ("--dets-per-image", "2, 5,inf", "--dets-per-class", "3,inf", "--order", "both")
    others = ("--subsets", "r,rcf", "--rerank", "1", "--iou", "bbox", "--output", output)
    lvdet_call("sweep", *files, *limits, *others).good()
    rows = json.loads(output.read_text())["rows"]
    # Of each subset: twice (two orders, no class limit, re-ranked), then a class limit, and none.
    assert len(rows) == 2 * (2 * 4 + 2)
    swept = lvdet.sweep(
        *files,
        dets_per_image=[2, 5, None],
        dets_per_class=[3, None],
        order=("class-first", "image-first"),
        subsets=["r", "rcf"],
        rerank=1,
    )
    assert rows == swept.to_dict()["rows"]


def test_files_by_their_endings(files: tuple[Path, Path], tmp_path: Path) -> None:
    targets = [tmp_path / f"out.{ending}" for ending in ("json", "csv", "md", "TEX")]
    outputs = [part for path in targets for part in ("--output", path)]
    lvdet_call("sweep", *files, "--paper", "ranking,subsets", *outputs).good()
    assert len(json.loads(targets[0].read_text())["rows"]) == 16
    with open(targets[1], newline="") as file:
        assert len(list(csv.DictReader(file))) == 16
    assert targets[2].read_text().count("### ") == 2
    assert targets[3].read_text().count(r"\toprule") == 2


def test_the_toy_example_needs_no_files(tmp_path: Path) -> None:
    done = lvdet_command("sweep", "--paper", "toy").good()
    assert "0.6525" in done.out
    assert "0.75" in done.out
    outputs = [tmp_path / f"toy.{ending}" for ending in ("json", "md", "tex")]
    for path in outputs:
        lvdet_call("sweep", "--paper", "toy", "--output", path).good()
    rows = json.loads(outputs[0].read_text())["toy"]["rows"]
    assert [row["kept"] for row in rows] == [["A1", "A2"], ["A1", "B1"], ["A1", "A2", "B1"]]
    assert "0.6525" in outputs[1].read_text()
    assert "0.6525" in outputs[2].read_text()
    lvdet_call("sweep", "--paper", "toy", "--output", tmp_path / "toy.csv").refused("toy.csv")


def test_the_toy_example_beside_others(files: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    done = lvdet_call("sweep", *files, "--paper", "toy,ranking", "--output", output).good()
    assert "0.6525" in done.out
    assert "(ranking)" in done.out
    assert {"rows", "toy"} <= set(json.loads(output.read_text()))
    lvdet_call("sweep", "--paper", "toy,ranking").refused("GT", "toy")


def test_warnings_go_to_stderr(tmp_path: Path) -> None:
    tables = lvdet.simulate(images=8, classes=30, dets_per_image=100, seed=1)
    done = lvdet_call("sweep", *write_case(*tables, tmp_path)).good()
    assert done.err.startswith("warning: ")
    assert "truncated at 100 detections per image" in done.err
    assert "usually too low" in done.err
    assert "incomplete" in done.out


def test_what_has_no_effect_is_said(files: tuple[Path, Path]) -> None:
    for limits in (
        (),
        ("--dets-per-image", "5"),
        ("--dets-per-class", "5", "--dets-per-image", "inf"),
    ):
        done = lvdet_call("sweep", *files, *limits, "--order", "both").good()
        assert done.err.startswith("note: --order both has no effect")
        assert done.err.count("\n") == 1
    both = ("--dets-per-image", "5", "--dets-per-class", "5")
    assert lvdet_call("sweep", *files, *both, "--order", "both").good().err == ""
    assert lvdet_call("sweep", *files, *both[:2]).good().err == ""


def test_the_toy_example_leaves_files_alone(files: tuple[Path, Path]) -> None:
    done = lvdet_call("sweep", *files, "--paper", "toy").good()
    assert done.err == "note: --paper toy reads no files; GT and DT were ignored\n"
    assert "(ranking)" not in done.out


def test_subsets_in_other_words_are_one(files: tuple[Path, Path]) -> None:
    once, twice = (
        lvdet_call("sweep", *files, "--dets-per-image", "5", "--subsets", subsets).good().out
        for subsets in ("r,rf", "r,rr,fr,rf")
    )
    assert once == twice


def test_a_table_s_title_promises_nothing(files: tuple[Path, Path]) -> None:
    done = lvdet_call("sweep", *files, "--paper", "ranking").good()
    assert "AP-Old with and without a class cap (ranking)" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--dets-per-image", "many"], "--dets-per-image has 'many'"),
        (["--dets-per-image", "1.5"], "'1.5'"),
        (["--dets-per-image", "1,000"], "--dets-per-image has '000': did you mean 1000?"),
        (["--dets-per-class", "100,10,000,inf"], "--dets-per-class has '000': did you mean 10000?"),
        (["--dets-per-class", "050"], "did you mean 50?"),
        (["--order", "last"], "order is 'last'"),
        (["--dets-per-image", ","], "--dets-per-image is ','"),
        (["--dets-per-class", "-3"], "limit on detections is -3"),
        (["--order", "last", "--dets-per-image", "3"], "order is 'last'"),
        (["--subsets", "x"], "'x'"),
        (["--paper", "rankings"], "unknown table 'rankings'"),
        (["--paper", ""], "--paper"),
        (["--iou", "mask"], "'mask'"),
        (["--output", "out.xlsx"], "'.xlsx'"),
        (["--output", "out"], "unknown extension"),
        (["--threads", "0"], "threads is 0"),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], says: str, tmp_path: Path) -> None:
    lvdet_call("sweep", *pair(tmp_path), *arguments).refused(says)
    assert {path.name for path in tmp_path.iterdir()} == {"gt.json", "dt.json"}


def test_coco_files_have_no_frequencies(tmp_path: Path) -> None:
    files = pair(tmp_path, COCO)
    lvdet_call("sweep", *files, "--paper", "subsets").refused("frequency")
    assert "(subsets)" not in lvdet_call("sweep", *files).good().out


def test_an_output_that_cannot_be_is_said_first(files: tuple[Path, Path], tmp_path: Path) -> None:
    target = tmp_path / "none" / "out.json"
    for verb in ("sweep", "audit", "evaluate"):
        done = lvdet_call(verb, files[0], tmp_path / "none.json", "--output", target)
        done.refused("out.json", "no such folder", code=1)
    lvdet_call("sweep", *files, "--output", tmp_path / "out.json").good()
