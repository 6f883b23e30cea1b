"""`lvdet rerank` and `lvdet audit` as they are run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lvdet
from cli.run_lvdet import lvdet_call, lvdet_command
from cli.small_set import COCO, pair
from tabled import write_case


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    tables = lvdet.simulate(images=12, classes=60, dets_per_image=40, masks=True, seed=5)
    return write_case(*tables, tmp_path_factory.mktemp("rerank"))


LIMITS = ("--dets-per-class", "8", "--dets-per-image", "15")


@pytest.mark.parametrize("ending", ["json", "jsonl", "parquet"])
def test_the_results_are_written(files: tuple[Path, Path], tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"out.{ending}"
    done = lvdet_call("rerank", *files, *LIMITS, "--output", output, "--iou", "bbox").good()
    assert "AP-Old, 15/image" in done.out
    assert "AP-Fixed, 10000/class" in done.out
    assert f"wrote {output}: {len(lvdet.read_detections(output)):,} of " in done.out
    result = lvdet.rerank(*files, dets_per_class=8, dets_per_image=15)
    written = lvdet.read_detections(output)
    assert written.score.tolist() == result.detections.score.tolist()
    assert written.box.tolist() == result.detections.box.tolist()
    assert written.masks is not None
    assert result.detections.masks is not None
    assert written.masks.row(3) == result.detections.masks.row(3)


def test_numbers_account_and_image(files: tuple[Path, Path], tmp_path: Path) -> None:
    account, scores = tmp_path / "account.jsonl", tmp_path / "scores.json"
    result = lvdet.rerank(*files, dets_per_class=8, dets_per_image=15)
    image = next(iter(result.account()))
    done = lvdet_command(
        *("rerank", *files, *LIMITS, "--account", account),
        *("--summary", scores, "--image", str(image.image_id)),
    ).good()
    assert str(image) in done.out
    assert json.loads(scores.read_text()) == result.to_dict()
    lines = [json.loads(line) for line in account.read_text().splitlines()]
    assert lines == [item.to_dict() for item in result.account()]
    assert f"wrote {account}: {len(lines):,} images" in done.out


def test_the_best_cap(files: tuple[Path, Path]) -> None:
    done = lvdet_call("rerank", *files, "--dets-per-class", "best", "--dets-per-image", "15").good()
    assert "tried)" in done.out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--dets-per-class", "many"], "'many'"),
        (["--dets-per-class", "-1"], "limit on detections is -1"),
        (["--dets-per-image", "-1"], "limit on detections is -1"),
        (["-o", "out.csv"], "'.csv'"),
        (["--account", "out.json"], "expected one of .jsonl, .ndjson"),
        (["--summary", "out.jsonl"], "expected one of .json"),
        (["--image", "77"], "image 77 is not in"),
    ],
)
def test_bad_options_are_one_line(arguments: list[str], says: str, tmp_path: Path) -> None:
    lvdet_call("rerank", *pair(tmp_path), *arguments).refused(says)
    assert {path.name for path in tmp_path.iterdir()} == {"gt.json", "dt.json"}


def test_what_is_wrong_is_said_before_results_are_read(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path, results="not JSON at all")
    for option, name in (("-o", "r.json"), ("--account", "a.jsonl"), ("--summary", "s.json")):
        target = tmp_path / "none" / name
        lvdet_call("rerank", gt, dt, option, target).refused(name, "no such folder", code=1)
    lvdet_call("rerank", gt, dt, "-o", tmp_path / "out.csv").refused("out.csv", ".ndjson")
    lvdet_call("rerank", tmp_path / "no.json", dt).refused("no.json")
    folder = tmp_path / "folder.json"
    folder.mkdir()
    lvdet_call("rerank", gt, dt, "-o", folder).refused("folder.json", "is a folder", code=1)


def test_a_limit_above_every_class_hints_at_best(files: tuple[Path, Path]) -> None:
    done = lvdet_call("rerank", *files).good()
    assert "No class has more than" in done.err
    assert "try --dets-per-class best" in done.err


def test_all_endings_are_in_the_help() -> None:
    words = " ".join(lvdet_call("rerank", "--help").good().out.split())
    assert ".json, .jsonl, .ndjson or .parquet" in words


def test_an_audit(files: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "audit.json"
    done = lvdet_command("audit", *files, "--output", output).good()
    result = lvdet.audit(*files)
    assert json.loads(output.read_text()) == result.to_dict()
    for sentence in (*result.findings(), *result.verdict):
        assert sentence in done.out


def test_an_audit_of_a_coco_file(tmp_path: Path) -> None:
    done = lvdet_call("audit", *pair(tmp_path, COCO)).good()
    assert "re-ranking cannot raise it" in done.out


def test_an_audit_of_what_is_no_file(tmp_path: Path) -> None:
    gt, _ = pair(tmp_path)
    lvdet_call("audit", gt, tmp_path / "none.json").refused("none.json")
