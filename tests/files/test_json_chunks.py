"""The JSON readers give what `json` gives, whatever the chunks and however many threads."""

from __future__ import annotations

import json
import random
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from files.record_files import (
    ROWS,
    any_record,
    any_value,
    array_text,
    assert_holds,
    bits,
    lines_text,
    object_text,
    parsed,
)
from lvdet import _native
from lvdet.files.collect import new_collector
from oracles.cases import coco_case, lvis_case

SEEDS = st.integers(0, 2**32)
CHUNKS = st.integers(64, 4096)
THREADS = st.integers(1, 4)


def native(
    text: str | bytes, *, chunk: int, threads: int, masks: bool = True, annotations: bool = False
) -> dict[str, Any]:
    with tempfile.TemporaryFile() as file:
        file.write(text.encode() if isinstance(text, str) else text)
        file.flush()
        if annotations:
            return _native.read_annotations_json(file.fileno(), masks, threads, chunk, None)
        collector = new_collector()
        report = collector.read_json(file.fileno(), masks, threads, chunk, None)
        return report | collector.collected(False)


def table(columns: dict[str, Any]) -> lvdet.Detections:
    assert columns["failure"] is None
    assert columns["problems"] == []
    names = ("image", "category", "score", "box", "image_ids", "category_ids")
    masks = columns["masks"]
    return lvdet.Detections(
        *(columns[name] for name in names), masks=None if masks is None else lvdet.Masks(**masks)
    )


def plain(columns: dict[str, Any]) -> dict[str, Any]:
    """Everything the native reader said, as values that compare bit by bit."""

    def value(item: Any) -> Any:
        if isinstance(item, dict):
            return plain(item)
        if isinstance(item, np.ndarray):
            return item.dtype.str, item.shape, item.tobytes()
        return item

    return {name: value(item) for name, item in columns.items()}


@settings(max_examples=150)
@given(SEEDS, CHUNKS, THREADS, st.booleans())
def test_a_list_of_records(seed: int, chunk: int, threads: int, masks: bool) -> None:
    rng = random.Random(seed)
    text = array_text(rng, [any_record(rng) for _ in range(rng.randint(0, 40))])
    columns = native(text, chunk=chunk, threads=threads, masks=masks)
    assert_holds(table(columns), parsed(text), masks=masks)
    assert plain(native(text, chunk=chunk, threads=1, masks=masks)) == plain(columns)


@settings(max_examples=100)
@given(SEEDS, CHUNKS, THREADS)
def test_lines_of_records(seed: int, chunk: int, threads: int) -> None:
    rng = random.Random(seed)
    text = lines_text(rng, [any_record(rng) for _ in range(rng.randint(1, 40))])
    columns = native(text, chunk=chunk, threads=threads)
    assert_holds(table(columns), [parsed(line) for line in text.split("\n") if line.strip()])
    assert plain(native(text, chunk=chunk, threads=1)) == plain(columns)


@settings(max_examples=150)
@given(SEEDS, CHUNKS, THREADS, st.booleans())
def test_damage_is_told_the_same(seed: int, chunk: int, threads: int, lines: bool) -> None:
    rng = random.Random(seed)
    make = lines_text if lines else array_text
    text = bytearray(make(rng, [any_record(rng) for _ in range(rng.randint(1, 25))]).encode())
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(text))
        text[at : at + rng.choice([0, 1, 1, 4])] = rng.choice(
            [b"", b"{", b"}", b"},{", b'"', b"\\", b"]", b"null", b"x", b"\0", b"-", b"1e999"]
        )
    whole = plain(native(bytes(text), chunk=1 << 21, threads=1))
    parts = plain(native(bytes(text), chunk=chunk, threads=threads))
    if whole["failure"] or whole["problems"]:
        # A mask that cannot be used may leave its bytes behind; no table is made of them.
        del whole["masks"], parts["masks"]
    assert parts == whole


def in_stretches(
    text: str | bytes, *, chunk: int, threads: int, most: int, masks: bool = True
) -> dict[str, Any]:
    """What `native` gives, read in stretches of about `most` bytes."""
    whole: dict[str, Any] = {}
    place = None
    with tempfile.TemporaryFile() as file:
        file.write(text.encode() if isinstance(text, str) else text)
        file.flush()
        collector = new_collector()
        while True:
            rows = whole.get("rows", 0)
            found = collector.read_json(file.fileno(), masks, threads, chunk, None, place, most)
            place = found.pop("place")
            failure = found.pop("failure")
            whole = {name: whole[name] + value if whole else value for name, value in found.items()}
            if place is None:
                break
            assert place.row == whole["rows"] >= rows
    return whole | {"failure": failure, "place": None} | collector.collected(False)


@settings(max_examples=200)
@given(SEEDS, CHUNKS, THREADS, st.integers(1, 4096), st.booleans(), st.booleans(), st.booleans())
def test_stretches_of_a_file(
    seed: int, chunk: int, threads: int, most: int, lines: bool, masks: bool, damaged: bool
) -> None:
    """Read on from where it stopped, a file says and holds what it does when read at once."""
    rng = random.Random(seed)
    make = lines_text if lines else array_text
    text = bytearray(make(rng, [any_record(rng) for _ in range(rng.randint(1, 40))]).encode())
    if damaged:
        at = rng.randrange(len(text))
        text[at : at + rng.choice([0, 1, 4, 1 << 20])] = rng.choice(
            [b"", b"{", b"}", b"},{", b'"', b"]", b"[]", b"null", b"x", b"\0", b"-", b"1e999"]
        )
    whole = native(bytes(text), chunk=1 << 21, threads=1, masks=masks)
    parts = in_stretches(bytes(text), chunk=chunk, threads=threads, most=most, masks=masks)
    if whole["failure"] or whole["problems"]:
        del whole["masks"], parts["masks"]
    assert plain(parts) == plain(whole)


@pytest.mark.parametrize("most", [1, 200, 1 << 20])
@pytest.mark.parametrize("chunk", [64, 150, 1000])
def test_a_comma_far_from_the_end_of_the_list(chunk: int, most: int) -> None:
    """No record follows it, in this stretch or the next."""
    record = json.dumps(ROWS[0])
    text = f"[{record}, {record}, {' ' * 500}]"
    failure = ("expected '{', the start of a record", len(text) - 1, 2)
    assert native(text, chunk=chunk, threads=2)["failure"] == failure
    assert in_stretches(text, chunk=chunk, threads=2, most=most)["failure"] == failure


@pytest.mark.parametrize("lines", [False, True])
def test_a_file_that_changes_between_stretches(lines: bool) -> None:
    """It is read as long as it was; what is missing is told."""
    line = json.dumps(ROWS[0])
    text = "\n".join([line] * 50) + "\n" if lines else "[" + ", ".join([line] * 50) + "]"
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.flush()

        def read(place: Any, most: int) -> dict[str, Any]:
            return new_collector().read_json(file.fileno(), True, 2, 64, None, place, most)

        place = read(None, 1000)["place"]
        assert 1000 < place.byte < 1200
        file.write(f"{line}\n".encode())
        file.flush()
        rest = read(place, 1 << 20)
        assert rest["failure"] is None
        assert rest["rows"] == 50 - place.row
        file.truncate(len(line) * 20)
        what, byte, _ = read(place, 1 << 20)["failure"]
        assert (what, byte) == ("the file shrank while it was being read", len(line) * 20)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("chunk", [64, 1000, 1 << 16])
@pytest.mark.parametrize("lines", [False, True])
def test_records_longer_than_a_chunk(chunk: int, threads: int, lines: bool) -> None:
    """Longer, too, than what is read ahead of a chunk to find its end."""
    rng = random.Random(1)
    records = [dict(row) for row in ROWS * 4]
    for row in (0, 3, 4):
        records[row]["notes"] = [any_value(rng) for _ in range(20)] + ["}, {" * 30_000]
    records[5]["parts"] = [{"image_id": 1}] * 20_000
    text = "\n".join(map(json.dumps, records)) if lines else json.dumps(records)
    assert_holds(table(native(text, chunk=chunk, threads=threads)), records)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("nested", ['"a": [{"b": 1},{"score": 9}], ', '"a": "},{", ', ""])
def test_every_place_of_a_chunk_s_end(nested: str, threads: int) -> None:
    """One chunk of each length: each byte of the record is once the last of a chunk."""
    record = f'{{{nested}"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.5}}'
    text = f"[{record},{record} , {record}\n,\n{record}]"
    expected = json.loads(text)
    for chunk in range(64, 64 + 2 * len(record)):
        assert_holds(table(native(text, chunk=chunk, threads=threads)), expected)


@pytest.mark.parametrize("row", [0, 3, 9])
def test_a_failure_names_its_row(row: int) -> None:
    records = [json.dumps(ROWS[0])] * 10
    records[row] = records[row].replace('"score"', "score")
    text = "[" + ", ".join(records) + "]"
    for chunk in (64, 200, 1 << 20):
        what, byte, at = native(text, chunk=chunk, threads=2)["failure"]
        assert at == row
        assert text[byte:].startswith("score")
        assert "expected a string" in what


@settings(max_examples=40)
@given(SEEDS, CHUNKS, THREADS, st.booleans())
def test_annotation_files(seed: int, chunk: int, threads: int, masks: bool) -> None:
    rng = random.Random(seed)
    content, _ = (lvis_case if rng.random() < 0.5 else coco_case)(seed % 1000, True)
    content |= {"info": any_value(rng), "licenses": [any_value(rng) for _ in range(5)]}
    text = object_text(rng, content, rng.choice([("",), ("", " "), ("\n ", "\t")]))
    columns = native(text, chunk=chunk, threads=threads, masks=masks, annotations=True)
    assert columns["failure"] is None
    assert columns["problems"] == []
    expected = parsed(text)
    annotations, images = expected["annotations"], expected["images"]
    for name in ("id", "image_id", "category_id"):
        assert columns[name].tolist() == [row[name] for row in annotations]
    assert bits(columns["box"]) == bits([row["bbox"] for row in annotations])
    assert bits(columns["area"]) == bits([row["area"] for row in annotations])
    assert columns["images.id"].tolist() == [image["id"] for image in images]
    assert columns["images.negative"].tolist() == [
        value for image in images for value in image.get("neg_category_ids", [])
    ]
    assert columns["categories.names"] == [row["name"] for row in expected["categories"]]
    assert (columns["masks"] is not None) == masks
    whole = native(text, chunk=1 << 21, threads=1, masks=masks, annotations=True)
    assert plain(columns) == plain(whole)
