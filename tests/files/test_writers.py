"""Detections written and read again, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import random
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools.coco import COCO

import lvdet
from files.annotation_files import lvis
from files.record_files import (
    MASKED,
    MASKS_ALONE,
    ROWS,
    Json,
    assert_holds,
    assert_same,
    boxed_records,
    one_line,
    parsed,
    save,
)
from lvdet.files import parquet
from lvdet.files.detection_files import write_tables

ENDINGS = [".json", ".jsonl", ".ndjson", ".parquet"]
POLYGONS = [[0.1, 0.2, 5.0, 0.0, 5.0, 1e-7], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.5, 8.5]]


def again(dt: lvdet.Detections, path: Path) -> lvdet.Detections:
    lvdet.write_detections(dt, path)
    return lvdet.read_detections(path)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "records",
    [
        ROWS,
        [MASKED[0], ROWS[1] | {"segmentation": POLYGONS}],
        [ROWS[0], MASKED[1], ROWS[1]],
        MASKS_ALONE[:1] * 2,
    ],
    ids=["boxes", "masks", "some masks", "masks without boxes"],
)
def test_written_and_read_again(ending: str, records: list[Json], tmp_path: Path) -> None:
    dt = lvdet.read_detections(records)
    copy = again(dt, tmp_path / f"out{ending}")
    assert_same(copy, dt)
    assert_holds(copy, records)
    assert copy.boxes_given == dt.boxes_given == ("bbox" in records[0])


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_rows_come_back(ending: str, tmp_path: Path) -> None:
    assert_holds(again(lvdet.read_detections([]), tmp_path / f"out{ending}"), [])


@pytest.mark.parametrize("ending", [".JSON", ".Parquet", ".JsonL"])
def test_endings_in_capitals(ending: str, tmp_path: Path) -> None:
    dt = lvdet.read_detections(ROWS)
    assert_same(again(dt, tmp_path / f"out{ending}"), dt)


finite = st.floats(allow_nan=False, allow_infinity=False)
sizes = st.floats(0, allow_nan=False, allow_infinity=False)
rows = st.tuples(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 5),
    finite,
    st.tuples(finite, finite, sizes, sizes),
)


@settings(max_examples=60)
@given(st.lists(rows, max_size=20), st.sampled_from(ENDINGS))
def test_numbers_come_back_bit_by_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], ending: str
) -> None:
    keys = ("image_id", "category_id", "score", "bbox")
    records = [dict(zip(keys, row, strict=True)) for row in rows]
    dt = lvdet.read_detections(records)
    assert_holds(again(dt, tmp_path_factory.getbasetemp() / f"numbers{ending}"), records)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("seed", range(6))
def test_random_records_come_back(ending: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    dt = lvdet.read_detections(save(tmp_path / "in.json", boxed_records(rng, 200)))
    assert_same(again(dt, tmp_path / f"out{ending}"), dt)


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_rows_of_many_blocks_come_back(ending: str, tmp_path: Path) -> None:
    """More rows than are formatted, or put into a row group, at a time."""
    count = (1 << 18) + 9_000
    rng = np.random.default_rng(0)
    dt = lvdet.Detections.from_arrays(
        rng.integers(0, 5000, count),
        rng.integers(0, 1203, count),
        rng.random(count),
        rng.integers(0, 640, (count, 4)),
    )
    copy = again(dt, tmp_path / f"out{ending}")
    for name in ("image", "category", "score", "box", "image_ids", "category_ids"):
        assert np.array_equal(getattr(copy, name), getattr(dt, name)), name


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".parquet"])
def test_boxes_of_some_rows_come_back(ending: str, tmp_path: Path) -> None:
    dt = lvdet.read_detections(save(tmp_path / "in.json", [ROWS[0], MASKS_ALONE[1]]))
    assert_same(again(dt, tmp_path / f"out{ending}"), dt)


def test_the_json_is_json(tmp_path: Path) -> None:
    records = boxed_records(random.Random(5), 100)
    dt = lvdet.read_detections(save(tmp_path / "in.json", records))
    lvdet.write_detections(dt, tmp_path / "out.json")
    assert_holds(dt, parsed((tmp_path / "out.json").read_text()))
    lvdet.write_detections(dt, tmp_path / "out.jsonl")
    text = (tmp_path / "out.jsonl").read_text()
    assert text.endswith("}\n")
    assert len(text.splitlines()) == len(records)
    assert_holds(dt, [parsed(line) for line in text.splitlines()])


@pytest.mark.parametrize("masks", [True, False])
def test_pycocotools_reads_the_json(masks: bool, tmp_path: Path) -> None:
    save(tmp_path / "gt.json", lvis())
    mask: Json = {"segmentation": {"size": [50, 20], "counts": [3, 6, 991]}} if masks else {}
    records = [
        {"image_id": 4, "category_id": 90, "score": 0.5, "bbox": [0.0, 3.0, 1.0, 6.0]} | mask,
        {"image_id": 4, "category_id": 2, "score": 0.25, "bbox": [1.5, 2.0, 3.0, 4.0]} | mask,
    ]
    dt = lvdet.read_detections(records)
    lvdet.write_detections(dt, tmp_path / "out.json")
    with contextlib.redirect_stdout(io.StringIO()):
        found = COCO(str(tmp_path / "gt.json")).loadRes(str(tmp_path / "out.json"))
    rows = found.loadAnns(found.getAnnIds())
    assert [row["score"] for row in rows] == [0.5, 0.25]
    assert [row["bbox"] for row in rows] == [record["bbox"] for record in records]
    assert [row["image_id"] for row in rows] == [4, 4]
    if masks:
        assert [row["segmentation"]["size"] for row in rows] == [[50, 20]] * 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pycocotools uses a deprecated NumPy protocol
            assert int(found.annToMask(rows[0]).sum()) == 6


# Tables one after another


def in_pieces(dt: lvdet.Detections, size: int) -> Iterator[lvdet.Detections]:
    for begin in range(0, len(dt), size):
        yield dt[begin : begin + size]


@pytest.mark.parametrize("size", [1, 3, 7, 100])
@pytest.mark.parametrize("ending", ENDINGS)
def test_tables_are_written_as_one(ending: str, size: int, tmp_path: Path) -> None:
    records = boxed_records(random.Random(size), 40)
    dt = lvdet.read_detections(save(tmp_path / "in.json", records))
    lvdet.write_detections(dt, tmp_path / f"whole{ending}")
    parts = tmp_path / f"parts{ending}"
    assert write_tables(in_pieces(dt, size), parts) == 40
    if ending == ".parquet":
        assert_same(lvdet.read_detections(parts), dt)
    else:
        assert parts.read_bytes() == (tmp_path / f"whole{ending}").read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_tables_without_rows(ending: str, tmp_path: Path) -> None:
    """None at all, some that are empty, and empty ones around others."""
    dt = lvdet.read_detections(MASKED)
    path = tmp_path / f"out{ending}"
    empty = lvdet.read_detections([])
    tables: list[lvdet.Detections]
    for tables in ([], [empty], [empty, dt[:0]]):
        assert write_tables(tables, path) == 0
        assert_holds(lvdet.read_detections(path), [])
    assert write_tables([empty, dt[:1], empty, dt[1:], empty], path) == 2
    assert_same(lvdet.read_detections(path), dt)


def test_row_groups_are_filled_from_small_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dt = lvdet.read_detections(MASKED * 50)

    def groups(size: int) -> list[int]:
        write_tables(in_pieces(dt, size), tmp_path / "out.parquet")
        assert_same(lvdet.read_detections(tmp_path / "out.parquet"), dt)
        found = pq.ParquetFile(tmp_path / "out.parquet").metadata
        return [found.row_group(place).num_rows for place in range(found.num_row_groups)]

    monkeypatch.setattr(parquet, "ROW_GROUP", 30)
    assert [groups(size) for size in (1, 7, 30, 45, 100)] == [[30, 30, 30, 10]] * 5
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1)
    assert groups(20) == [20] * 5
    assert groups(100) == [30, 30, 30, 10]


BOXES = lvdet.read_detections(ROWS)
MASKS = lvdet.read_detections(MASKED)
ALONE = lvdet.read_detections(MASKS_ALONE)


@pytest.mark.parametrize(
    ("first", "second"), [(BOXES, MASKS), (MASKS, BOXES), (MASKS, ALONE), (ALONE, MASKS)]
)
@pytest.mark.parametrize("ending", [".json", ".jsonl"])
def test_tables_that_differ_as_json(
    first: lvdet.Detections, second: lvdet.Detections, ending: str, tmp_path: Path
) -> None:
    """Each with what it has."""
    path = tmp_path / f"out{ending}"
    write_tables([first, second], path)
    lvdet.write_detections(first, tmp_path / f"1{ending}")
    lvdet.write_detections(second, tmp_path / f"2{ending}")
    texts = [(tmp_path / f"{place}{ending}").read_text() for place in (1, 2)]
    expected = "".join(texts) if ending == ".jsonl" else texts[0][:-2] + "," + texts[1][1:]
    assert path.read_text() == expected


def test_tables_that_lack_what_the_first_has_as_parquet(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    write_tables([MASKS, ALONE, BOXES], path)
    dt = lvdet.read_detections(path)
    assert dt.boxes_given
    assert dt.box.tolist() == [*MASKS.box.tolist(), *ALONE.box.tolist(), *BOXES.box.tolist()]
    assert dt.masks is not None
    assert dt.masks.kind.tolist() == [1, 1, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("first", "second", "what"), [(BOXES, MASKS, "masks"), (ALONE, MASKS, "boxes")]
)
def test_tables_that_have_what_the_first_lacks_as_parquet(
    first: lvdet.Detections, second: lvdet.Detections, what: str, tmp_path: Path
) -> None:
    path = save(tmp_path / "out.parquet", "as it was")
    with pytest.raises(lvdet.InputError) as caught:
        write_tables([first, replace(second, source="later.json")], path)
    assert one_line(caught.value) == (
        f"later.json: rows with {what} follow rows without, but all rows of a Parquet file need "
        "the same columns"
    )
    assert path.read_text() == "as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("error", [lvdet.InputError("bad.json, row 7"), KeyboardInterrupt()])
def test_a_table_that_cannot_be_made(ending: str, error: BaseException, tmp_path: Path) -> None:
    def tables() -> Iterator[lvdet.Detections]:
        yield BOXES
        raise error

    path = save(tmp_path / f"out{ending}", "as it was")
    with pytest.raises(type(error)) as caught:
        write_tables(tables(), path)
    assert caught.value is error
    assert path.read_text() == "as it was"
    assert [path.name for path in tmp_path.iterdir()] == [path.name]


# Whole or not at all


def write(dt: Any, path: Path) -> None:
    if isinstance(dt, lvdet.GroundTruth):
        lvdet.write_ground_truth(dt, path)
    else:
        lvdet.write_detections(dt, path)


@pytest.fixture
def content(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> lvdet.Detections | lvdet.GroundTruth:
    """What goes into a file of this name."""
    if name == "gt.json":
        folder = tmp_path_factory.mktemp("in")
        return lvdet.read_ground_truth(save(folder / "gt.json", lvis()))
    return lvdet.read_detections(ROWS)


TARGETS = ["out.json", "out.jsonl", "out.parquet", "gt.json"]


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_failed_write_leaves_the_target(
    name: str,
    failing: str,
    existing: bool,
    content: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if existing:
        save(tmp_path / name, "as it was")
    monkeypatch.setattr(os, failing, no_space)
    with pytest.raises(lvdet.OutputError) as caught:
        write(content, tmp_path / name)
    text = one_line(caught.value)
    assert str(tmp_path / name) in text
    assert "No space left" in text
    assert [path.name for path in tmp_path.iterdir()] == [name] * existing
    if existing:
        assert (tmp_path / name).read_text() == "as it was"


@pytest.mark.parametrize("name", TARGETS)
def test_a_write_that_is_stopped_leaves_the_target(
    name: str, content: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    save(tmp_path / name, "as it was")
    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        write(content, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "as it was"


@pytest.mark.parametrize("name", TARGETS)
def test_an_existing_file_is_replaced(name: str, content: Any, tmp_path: Path) -> None:
    path = save(tmp_path / name, "x" * 100_000)
    write(content, path)
    assert path.stat().st_size < 100_000
    if name == "gt.json":
        assert len(lvdet.read_ground_truth(path)) == 3
    else:
        assert_holds(lvdet.read_detections(path), ROWS)


def test_a_file_is_replaced_by_what_was_read_from_it(tmp_path: Path) -> None:
    path = save(tmp_path / "r.json", ROWS)
    dt = lvdet.read_detections(path)
    lvdet.write_detections(dt[[1, 0]], path)
    assert_holds(lvdet.read_detections(path), ROWS[::-1])


@pytest.mark.parametrize("name", TARGETS)
def test_a_folder_that_is_not_there(name: str, content: Any, tmp_path: Path) -> None:
    with pytest.raises(lvdet.OutputError, match="cannot write: No such file"):
        write(content, tmp_path / "nowhere" / name)


@pytest.mark.parametrize("name", TARGETS)
def test_a_folder_in_the_place_of_the_file(name: str, content: Any, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(lvdet.OutputError, match=r"cannot write: Is a directory"):
        write(content, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("target", ["file.txt/out.json", "n" * 251 + ".json"])
def test_a_path_that_cannot_be(target: str, tmp_path: Path) -> None:
    save(tmp_path / "file.txt", "")
    with pytest.raises(lvdet.OutputError, match="cannot write"):
        lvdet.write_detections(lvdet.read_detections(ROWS), tmp_path / target)


def test_a_name_as_long_as_the_system_allows(tmp_path: Path) -> None:
    dt = lvdet.read_detections(ROWS)
    assert_same(again(dt, tmp_path / ("n" * 250 + ".json")), dt)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The file it points to gets the content."""
    (tmp_path / "elsewhere").mkdir()
    file = save(tmp_path / "elsewhere" / "real.json", "as it was")
    link = tmp_path / "out.json"
    link.symlink_to(file)
    lvdet.write_detections(lvdet.read_detections(ROWS), link)
    assert link.is_symlink()
    assert_holds(lvdet.read_detections(file), ROWS)


@pytest.mark.parametrize("linked", [False, True])
def test_a_device_is_written_into(linked: bool, tmp_path: Path) -> None:
    """A pipe stands for /dev/null and /dev/stdout, which root would lose if they were replaced."""
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    target = tmp_path / "out.json" if linked else pipe
    if linked:
        target.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        lvdet.write_detections(lvdet.read_detections(ROWS), target)
        assert pipe.is_fifo()
        assert target.is_symlink() == linked
        assert json.loads(os.read(reader, 1 << 16)) == ROWS
    finally:
        os.close(reader)


@pytest.mark.parametrize("name", ["out", "out.txt", "out.json.gz", "out.npz", ".json", "out."])
def test_an_unknown_ending(name: str, tmp_path: Path) -> None:
    with pytest.raises(lvdet.InputError, match=r"unknown extension .* expected one of \.json"):
        lvdet.write_detections(lvdet.read_detections(ROWS), tmp_path / name)
    assert list(tmp_path.iterdir()) == []
