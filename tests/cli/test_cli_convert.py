"""`lvdet convert`: formats, the best of each class, and files left whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import lvdet
from cli.run_lvdet import COMMAND, lvdet_call, lvdet_command, shell_command
from cli.small_set import pair
from files.record_files import Json, assert_holds, assert_same, save
from writers.added_images import best, random_images, records_of

MASK = {"size": [4, 3], "counts": "174"}
RECORDS: list[Json] = [record for _, records in random_images(40, 0) for record in records]
MASKED = [record | {"segmentation": MASK} for record in RECORDS]


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".ndjson", ".parquet"])
@pytest.mark.parametrize("records", [RECORDS, MASKED, []], ids=["boxes", "masks", "none"])
def test_to_any_format_and_back(ending: str, records: list[Json], tmp_path: Path) -> None:
    source = save(tmp_path / "in.json", records)
    out = tmp_path / f"out{ending}"
    done = lvdet_call("convert", source, "-o", out).good()
    count = f"{len(records):,}"
    assert done.out == f"wrote {out}: {count} of {count} detections\n"
    assert done.err == ""
    lvdet_call("convert", out, "--output", tmp_path / "again.json").good()
    assert_holds(lvdet.read_detections(tmp_path / "again.json"), records)


@pytest.mark.parametrize("per_class", [1, 5, 10_000])
def test_the_best_of_each_class(per_class: int, tmp_path: Path) -> None:
    source = save(tmp_path / "in.json", RECORDS)
    out = tmp_path / "out.parquet"
    done = lvdet_command("convert", source, "-o", out, "--dets-per-class", str(per_class)).good()
    expected = best([(0, RECORDS)], per_class)
    assert done.out == f"wrote {out}: {len(expected)} of {len(RECORDS)} detections\n"
    assert records_of(out) == expected


def test_shards(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    save(tmp_path / "in" / "1.json", RECORDS[:50])
    lines = "".join(json.dumps(record) + "\n" for record in RECORDS[50:])
    save(tmp_path / "in" / "2.jsonl.gz", gzip.compress(lines.encode()))
    for source in (tmp_path / "in", tmp_path / "in" / "*"):
        lvdet_call("convert", source, "-o", tmp_path / "out.json").good()
        assert_holds(lvdet.read_detections(tmp_path / "out.json"), RECORDS)
        lvdet_call(
            "convert", source, "-o", tmp_path / "out.json", "--dets-per-class", "4", "--threads=1"
        ).good()
        assert records_of(tmp_path / "out.json") == best([(0, RECORDS)], 4)


def test_standard_input_and_npz(tmp_path: Path) -> None:
    lvdet_command(
        "convert", "-", "-o", tmp_path / "a.parquet", input=json.dumps(RECORDS).encode()
    ).good()
    assert_holds(lvdet.read_detections(tmp_path / "a.parquet"), RECORDS)
    dt = lvdet.read_detections(RECORDS)
    np.savez(
        tmp_path / "in.npz",
        image_id=dt.image_ids[dt.image],
        category_id=dt.category_ids[dt.category],
        score=dt.score,
        bbox=dt.box,
    )
    lvdet_call("convert", tmp_path / "in.npz", "-o", tmp_path / "b.json").good()
    assert_same(lvdet.read_detections(tmp_path / "b.json"), dt)


@pytest.mark.parametrize("with_boxes", [True, False])
@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_without_masks(ending: str, with_boxes: bool, tmp_path: Path) -> None:
    """If there are no boxes, they are made from masks."""
    records = MASKED
    if not with_boxes:
        records = [{k: v for k, v in row.items() if k != "bbox"} for row in MASKED]
    source = tmp_path / f"in{ending}"
    lvdet.write_detections(lvdet.read_detections(records), source)
    lvdet_call("convert", source, "-o", tmp_path / "out.json", "--no-masks").good()
    box = {} if with_boxes else {"bbox": [0.0, 0.0, 2.0, 4.0]}
    assert_holds(lvdet.read_detections(tmp_path / "out.json"), [row | box for row in RECORDS])
    assert "segmentation" not in (tmp_path / "out.json").read_text()


@pytest.mark.parametrize("name", ["in.json", "in.parquet"])
def test_into_its_own_input(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    lvdet.write_detections(lvdet.read_detections(RECORDS), path)
    lvdet_call("convert", path, "-o", path, "--dets-per-class", "2").good()
    assert records_of(path) == best([(0, RECORDS)], 2)


def test_a_full_disk_leaves_the_input(tmp_path: Path) -> None:
    path = save(tmp_path / "in.json", RECORDS)
    before = path.read_bytes()
    command = f'ulimit -f 1; exec "{COMMAND}" convert "{path}" -o "{path}"'
    shell_command(command).refused(f"lvdet: error: {path}: cannot write: ", code=1)
    assert path.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["in.json"]


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (None, [], "in.json: no such file"),
        ("[{", [], "in.json"),
        ([RECORDS[0], {"image_id": 1}], [], "in.json, row 1"),
        (RECORDS, ["--dets-per-class", "-1"], "-1"),
        (RECORDS, ["--threads", "0"], "threads is 0"),
    ],
)
def test_bad_input(content: object, options: list[str], says: str, tmp_path: Path) -> None:
    if content is not None:
        save(tmp_path / "in.json", content)
    out = save(tmp_path / "out.json", "as it was")
    lvdet_call("convert", tmp_path / "in.json", "-o", out, *options).refused(says)
    assert out.read_text() == "as it was"


@pytest.mark.parametrize("name", ["out.csv", "out", "out.json.gz"])
def test_a_format_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    """Known before anything is read."""
    done = lvdet_call("convert", tmp_path / "nowhere.json", "-o", tmp_path / name)
    done.refused(f"{name}: unknown extension", "expected one of .json, .jsonl, .ndjson, .parquet")


def test_what_evaluate_says_stays(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    expected = lvdet_call("evaluate", gt, dt).good().out
    lvdet_call("convert", dt, "-o", tmp_path / "dt.parquet").good()
    assert lvdet_call("evaluate", gt, tmp_path / "dt.parquet").good().out == expected
