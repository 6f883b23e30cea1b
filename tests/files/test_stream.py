"""Files as a stream of tables: together they are what is read at once, in small pieces."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from cli.run_lvdet import Done, python_program
from files.record_files import (
    MASKED,
    MASKS_ALONE,
    ROWS,
    Json,
    any_record,
    array_text,
    assert_holds,
    assert_same,
    lines_text,
    refused_stream,
    save,
    small,
    written,
)
from lvdet.files import detections_json
from lvdet.files.opening import run_reader
from lvdet.files.stream import detection_tables
from lvdet.tables.masks import no_masks
from thread_setting import on_threads


def joined(tables: list[lvdet.Detections]) -> lvdet.Detections:
    """One table of all rows."""
    masks = None
    if any(table.masks is not None for table in tables):
        masks = lvdet.Masks.concatenate([table.masks or no_masks(len(table)) for table in tables])
    return lvdet.Detections.from_arrays(
        np.concatenate([table.image_ids[table.image] for table in tables]),
        np.concatenate([table.category_ids[table.category] for table in tables]),
        np.concatenate([table.score for table in tables]),
        np.concatenate([table.box for table in tables]),
        masks,
    )


def assert_whole(tables: list[lvdet.Detections], whole: lvdet.Detections) -> None:
    """The tables have the rows of the whole, and name them by file and place."""
    assert all(len(table) for table in tables)
    if tables:
        assert_same(joined(tables), whole)
    else:
        assert len(whole) == 0
    rows: dict[str, int] = {}
    for table in tables:
        begin = rows.get(table.source, 0)
        rows[table.source] = begin + len(table)
        assert table.file_row is not None
        assert table.file_row.tolist() == list(range(begin, begin + len(table)))
        assert table.named(0) == f"{table.source}, row {begin:,}"


KINDS = ["json", "lines", "gzip lines", "parquet"]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize(
    ("records", "kind"),
    [*product((ROWS, MASKED, MASKS_ALONE), KINDS), (ROWS, "npz")],
)
def test_tables_of_a_file(records: list[Json], kind: str, tmp_path: Path) -> None:
    path = written(records * 20, tmp_path, kind)
    tables = list(detection_tables(path))
    assert len(tables) > 4
    assert max(map(len, tables)) < 12
    assert {table.source for table in tables} == {str(path)}
    assert {table.boxes_given for table in tables} == {records is not MASKS_ALONE}
    assert_whole(tables, lvdet.read_detections(path))


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.integers(1, 3000), st.sampled_from(["array", "lines", "parquet"]))
def test_masks_of_all_kinds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, stretch: int, kind: str
) -> None:
    rng = random.Random(seed)
    records = [any_record(rng) for _ in range(rng.randint(1, 60))]
    folder = tmp_path_factory.getbasetemp()
    text = (lines_text if kind == "lines" else array_text)(rng, records)
    path = save(folder / "any.json", text)
    whole = lvdet.read_detections(path)
    if kind == "parquet":
        path = folder / "any.parquet"
        lvdet.write_detections(whole, path)
    with pytest.MonkeyPatch.context() as patch:
        small(patch, stretch)
        tables = list(detection_tables(path))
    if whole.masks is None:
        assert all(table.masks is None for table in tables)
    assert_whole(tables, whole)


@pytest.mark.usefixtures("pieces")
def test_threads_change_no_table(tmp_path: Path) -> None:
    path = save(tmp_path / "r.json", MASKED * 30)
    one, *others = on_threads(lambda: [len(t) for t in detection_tables(path)], 1, 2, 5)
    assert others == [one, one]


@pytest.mark.usefixtures("pieces")
def test_tables_of_several_files(tmp_path: Path) -> None:
    for place, kind in enumerate(["json", "lines", "gzip lines", "parquet", "npz"]):
        (tmp_path / str(place)).mkdir()
        written(ROWS * (5 + place), tmp_path / str(place), kind)
    save(tmp_path / "0" / "empty.json", [])
    save(tmp_path / "0" / "empty.jsonl", "")
    pattern = f"{tmp_path}/*/*"
    tables = list(detection_tables(pattern))
    assert_whole(tables, lvdet.read_detections(pattern))
    assert len({table.source for table in tables}) == 5
    paths = [str(tmp_path / "4" / "r.npz"), tmp_path / "0"]
    assert_whole(list(detection_tables(paths)), lvdet.read_detections(paths))


@pytest.mark.parametrize(
    ("name", "content"), [("r.json", "[]"), ("r.json", "[ \n ]"), ("r.jsonl", ""), ("r.pq", None)]
)
def test_no_rows_are_no_tables(name: str, content: str | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is None:
        lvdet.write_detections(lvdet.read_detections([]), tmp_path / "r.parquet")
        (tmp_path / "r.parquet").rename(path)
    else:
        save(path, content)
    assert list(detection_tables(path)) == []


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(pack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    content = pack(json.dumps(MASKS_ALONE * 20).encode())
    for masks in (True, False):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        tables = list(detection_tables("-", masks=masks))
        assert len(tables) > 4
        assert_holds(joined(tables), MASKS_ALONE * 20)


# Without masks


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("kind", KINDS)
def test_masks_are_passed_by(kind: str, tmp_path: Path) -> None:
    path = written(MASKED * 20, tmp_path, kind)
    tables = list(detection_tables(path, masks=False))
    assert {table.masks for table in tables} == {None}
    assert_holds(joined(tables), ROWS * 20)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("kind", ["json", "lines", "gzip lines"])
def test_masks_are_read_where_boxes_are_missing(kind: str, tmp_path: Path) -> None:
    """Wherever in the file, and in no other table."""
    records = ROWS * 10 + MASKED * 20 + MASKS_ALONE * 5 + MASKED * 20
    path = written(records, tmp_path, kind)
    tables = list(detection_tables(path, masks=False))
    without_box = range(60, 70)
    for table in tables:
        assert table.file_row is not None
        assert (table.masks is not None) == any(row in without_box for row in table.file_row)
    whole = joined(tables)
    assert whole.box[60:70].tolist() == [[0.0, 0.0, 2.0, 4.0]] * 10
    assert whole.box.tolist() == lvdet.read_detections(path).box.tolist()


@pytest.mark.usefixtures("pieces")
def test_a_mask_from_which_no_box_can_be_made(tmp_path: Path) -> None:
    records = [*ROWS * 10, MASKS_ALONE[0] | {"segmentation": {"size": [4, 3], "counts": "1"}}]
    path = save(tmp_path / "r.json", records)
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.read_detections(path, masks=False)
    with pytest.raises(lvdet.InputError) as streamed:
        list(detection_tables(path, masks=False))
    assert str(streamed.value) == str(caught.value)


# What is refused (files that cannot be used: see `refused`, in all tests of such files)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_with_and_without_masks(order: str, kind: str, tmp_path: Path) -> None:
    for name, records in zip(order, (MASKED, ROWS), strict=True):
        (tmp_path / name).mkdir()
        written(records * 20, tmp_path / name, kind)
    paths = [next((tmp_path / name).iterdir()) for name in "ab"]
    with pytest.raises(lvdet.InputError, match="has no masks, but") as caught:
        lvdet.read_detections(paths)
    assert refused_stream(paths) == str(caught.value)
    assert len(joined(list(detection_tables(paths, masks=False)))) == 80


@pytest.mark.usefixtures("pieces")
def test_masks_after_a_file_without_are_refused_at_once(tmp_path: Path) -> None:
    save(tmp_path / "a.json", ROWS * 20)
    save(tmp_path / "b.json", MASKED * 20)
    tables, said = read_until_refused(tmp_path)
    assert said == f"{tmp_path / 'a.json'} has no masks, but {tmp_path / 'b.json'} does"
    assert {table.source for table in tables} == {str(tmp_path / "a.json")}


@pytest.mark.usefixtures("pieces")
def test_columns_of_masks_are_masks_from_the_first_table_on(tmp_path: Path) -> None:
    path = written(ROWS * 10 + MASKED * 10, tmp_path, "parquet")
    tables = list(detection_tables(path))
    assert all(table.masks is not None for table in tables)
    assert_whole(tables, lvdet.read_detections(path))


def read_until_refused(path: Path) -> tuple[list[lvdet.Detections], str]:
    tables: list[lvdet.Detections] = []
    with pytest.raises(lvdet.InputError) as caught:
        tables.extend(detection_tables(path))
    return tables, str(caught.value)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("kind", ["json", "lines", "gzip lines", "parquet"])
@pytest.mark.parametrize("row", [0, 1, 17, 38, 39])
def test_what_comes_before_is_given_out(row: int, kind: str, tmp_path: Path) -> None:
    records = [dict(record) for record in ROWS * 20]
    records[row]["score"] = float("nan")
    if kind == "parquet":
        columns = {key: [record[key] for record in records] for key in records[0]}
        path = tmp_path / "r.parquet"
        pq.write_table(pa.table(columns), path)
    else:
        path = written(records, tmp_path, kind)
    tables, said = read_until_refused(path)
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.read_detections(path)
    assert said == str(caught.value)
    assert f"row {row}" in said
    assert "score is nan" in said
    before = sum(map(len, tables))
    assert row - 10 < before <= row
    if tables:
        assert_holds(joined(tables), records[:before])


@pytest.mark.usefixtures("pieces")
def test_every_cut_of_a_file(tmp_path: Path) -> None:
    text = json.dumps(MASKED * 5)
    for cut in range(1, len(text), 3):
        path = save(tmp_path / "r.json", text[:cut])
        with pytest.raises(lvdet.InputError) as caught:
            lvdet.read_detections(path)
        assert read_until_refused(path)[1] == str(caught.value)


def test_what_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(lvdet.InputError, match="no such file"):
        detection_tables(tmp_path / "nowhere.json")
    for source in (ROWS, [], {}, None):
        with pytest.raises(lvdet.InputError, match="expected a path or a list of paths"):
            detection_tables(source)  # type: ignore[arg-type]


# Progress and interrupts


@pytest.mark.usefixtures("pieces")
def test_progress_over_files_never_falls_and_ends_at_all(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for kind in KINDS:
        written(MASKED * 20, tmp_path / "in", kind)
    told: list[tuple[int, int]] = []
    for _ in detection_tables(tmp_path / "in", update=lambda *news: told.append(news)):
        pass
    total = sum(path.stat().st_size for path in (tmp_path / "in").iterdir())
    assert {of for _, of in told} == {total}
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == total
    assert len({done for done, _ in told}) > 16


@pytest.mark.usefixtures("pieces")
def test_progress_can_stop_the_reading(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise KeyboardInterrupt

    path = save(tmp_path / "r.json", ROWS * 40)
    before = threading.enumerate()
    tables = detection_tables(path, update=stop)
    with pytest.raises(KeyboardInterrupt):
        list(tables)
    assert threading.enumerate() == before


INTERRUPTED = """
import os, signal, sys, threading
import lvdet
from lvdet.files import detections_json
from lvdet.files.stream import detection_tables
detections_json.CHUNK = detections_json.STRETCH = 1 << 27  # a request to stop is heard late
timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
timer.start()
try:
    while True:
        if sys.argv[2] == "stream":
            list(detection_tables(sys.argv[1]))
        else:
            lvdet.read_detections(sys.argv[1])
except KeyboardInterrupt:
    timer.join()  # it may still be returning from the signal that it sent
    print("interrupted", threading.active_count())
"""


def test_an_interrupt_ends_reading(tmp_path: Path) -> None:
    """At once, and with all threads: nothing is left to crash at the end."""
    line = b'{"image_id": 1, "category_id": 2, "bbox": [1.25, 2.5, 3.75, 4.5], "score": 0.125}\n'
    (tmp_path / "dt.jsonl").write_bytes(line * 2_000_000)
    for way in ("stream", "table") * 2:
        done = python_program(INTERRUPTED, tmp_path / "dt.jsonl", way)
        assert done == Done(0, "interrupted 1\n", "")


@pytest.mark.usefixtures("pieces")
@pytest.mark.skipif(sys.platform != "linux", reason="open files are listed as Linux does")
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_left_unfinished_closes_its_files(kind: str, tmp_path: Path) -> None:
    def opened() -> Iterator[str]:
        for descriptor in os.listdir("/proc/self/fd"):
            try:
                yield os.readlink(f"/proc/self/fd/{descriptor}")
            except OSError:
                continue

    path = written(MASKED * 20, tmp_path, kind)
    before = sorted(opened())
    tables = detection_tables(path)
    next(tables)
    assert sorted(opened()) != before
    del tables
    assert sorted(opened()) == before


@pytest.mark.usefixtures("pieces")
def test_each_stretch_begins_where_the_last_one_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def watched(read: Any, size: int, update: Any, begin: int) -> dict[str, Any]:
        begun.append(begin)
        return run_reader(read, size, update, begin)

    monkeypatch.setattr(detections_json, "run_reader", watched)
    text = json.dumps(ROWS * 20)
    rows = [len(table) for table in detection_tables(save(tmp_path / "r.json", text))]
    record = json.dumps(ROWS)[1:-1]
    assert sum(rows) == 40
    assert begun[0] == 0
    assert all(text[begin] == "{" for begin in begun[1:])
    assert all(end - start > len(record) for start, end in pairwise(begun))


def test_a_reader_begins_where_it_is_told() -> None:
    """Bytes read before count in the progress."""
    told: list[tuple[int, int]] = []

    def read(control: Any) -> dict[str, Any]:
        control[0] += 5
        threading.Event().wait(0.2)
        return {}

    run_reader(read, 100, lambda *news: told.append(news), 30)
    assert set(told) == {(35, 100)}
