"""The same detections from every kind of source."""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lvdet
from cli.run_lvdet import python_program
from files.record_files import ROWS, Json, assert_holds, save
from lvdet.files import parquet
from lvdet.files.parquet import parquet_tables
from progress_calls import calling
from thread_setting import threads

RECORDS: list[Json] = [
    {"image_id": 4, "category_id": 1, "bbox": [1.5, 2.0, 3.25, 4.0], "score": 0.125},
    {"image_id": 2, "category_id": 9, "bbox": [-1.0, 0.1, 1e-3, 7.0], "score": 0.1},
    {"image_id": 4, "category_id": 9, "bbox": [0.0, 0.0, 0.0, 0.0], "score": -3.5},
]
MASKED = [
    RECORDS[0] | {"segmentation": {"size": [4, 3], "counts": "174"}},
    RECORDS[1],
    RECORDS[2] | {"segmentation": {"size": [2, 2], "counts": "04"}},
]


def lines(records: list[Json]) -> str:
    return "\n".join(json.dumps(record) for record in records)


def columns(records: list[Json]) -> dict[str, Any]:
    names = ("image_id", "category_id", "score", "bbox")
    return {name: [record[name] for record in records] for name in names}


@pytest.mark.parametrize(
    "text",
    [
        lines(RECORDS),
        lines(RECORDS) + "\n",
        "\n\n" + "\n \n\t\n".join(json.dumps(record) for record in RECORDS) + "\n\n",
        lines(RECORDS).replace("\n", "\r\n") + "\r\n",
        lines(RECORDS).replace("\n", "  \n  "),
    ],
    ids=["no final newline", "final newline", "blank lines", "CRLF", "space at the ends"],
)
@pytest.mark.parametrize("name", ["r.jsonl", "r.ndjson", "r.json", "r"])
def test_lines_of_json(text: str, name: str, tmp_path: Path) -> None:
    assert_holds(lvdet.read_detections(save(tmp_path / name, text)), RECORDS)


@pytest.mark.parametrize("text", [json.dumps(MASKED), lines(MASKED)], ids=["list", "lines"])
@pytest.mark.parametrize("name", ["r.json.gz", "r.jsonl.gz", "r.json"])
def test_gzip_is_seen_from_the_content(text: str, name: str, tmp_path: Path) -> None:
    path = save(tmp_path / name, gzip.compress(text.encode()))
    assert_holds(lvdet.read_detections(path), MASKED)


def test_gzip_of_several_members(tmp_path: Path) -> None:
    half = len(lines(RECORDS)) // 2
    parts = lines(RECORDS)[:half], lines(RECORDS)[half:]
    path = save(tmp_path / "r.jsonl.gz", b"".join(gzip.compress(p.encode()) for p in parts))
    assert_holds(lvdet.read_detections(path), RECORDS)


def many_records(count: int) -> list[Json]:
    rng = np.random.default_rng(count)
    return [
        {"image_id": int(a), "category_id": int(b), "score": float(c), "bbox": d.tolist()}
        for a, b, c, d in zip(
            rng.integers(0, 40, count),
            rng.integers(0, 9, count),
            rng.random(count),
            rng.random((count, 4)),
            strict=True,
        )
    ]


@pytest.fixture
def shards(tmp_path: Path) -> tuple[Path, list[Json]]:
    """A folder of files of all kinds whose names are not in the order of writing."""
    folder = tmp_path / "shards"
    folder.mkdir()
    records = many_records(60)
    part = {  # in order of name, as text
        "10.json": records[:10],
        "9.jsonl": records[10:20],
        "B.parquet": records[20:30],
        "a.npz": records[30:40],
        "b.json.gz": records[40:50],
        "c.ndjson": records[50:],
    }
    save(folder / "c.ndjson", lines(part["c.ndjson"]))
    save(folder / "10.json", part["10.json"])
    np.savez(folder / "a.npz", **columns(part["a.npz"]))
    pq.write_table(pa.table(columns(part["B.parquet"])), folder / "B.parquet")
    save(folder / "b.json.gz", gzip.compress(json.dumps(part["b.json.gz"]).encode()))
    save(folder / "9.jsonl", lines(part["9.jsonl"]))
    save(folder / ".hidden.json", "not JSON")
    (folder / "folder").mkdir()
    return folder, records


def test_a_folder_is_read_in_order_of_name(shards: tuple[Path, list[Json]]) -> None:
    folder, records = shards
    for source in (folder, str(folder), f"{folder}/"):
        assert_holds(lvdet.read_detections(source), records)


def test_a_pattern_is_read_in_order_of_name(shards: tuple[Path, list[Json]]) -> None:
    folder, records = shards
    assert_holds(lvdet.read_detections(f"{folder}/*.*"), records)
    assert_holds(lvdet.read_detections(f"{folder}/[b9]*"), records[10:20] + records[40:50])
    assert_holds(lvdet.read_detections(f"{folder.parent}/**/*.json"), records[:10])


def test_a_list_of_paths_is_read_in_its_order(shards: tuple[Path, list[Json]]) -> None:
    folder, records = shards
    paths = [str(folder / "c.ndjson"), folder / "10.json", f"{folder}/B.*"]
    expected = records[50:] + records[:10] + records[20:30]
    assert_holds(lvdet.read_detections(paths), expected)
    assert_holds(lvdet.read_detections(tuple(paths)), expected)


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    path = save(tmp_path / "run[1].json", RECORDS)
    save(tmp_path / "run1.json", [])
    assert_holds(lvdet.read_detections(path), RECORDS)


def test_masks_of_shards_are_joined(tmp_path: Path) -> None:
    save(tmp_path / "1.json", MASKED[:2])
    save(tmp_path / "2.json", MASKED[2:])
    save(tmp_path / "3.jsonl", lines(MASKED))
    assert_holds(lvdet.read_detections(tmp_path), MASKED * 2)


def test_shards_with_and_without_masks_do_not_mix(tmp_path: Path) -> None:
    save(tmp_path / "1.json", MASKED)
    save(tmp_path / "2.json", RECORDS)
    with pytest.raises(lvdet.InputError, match=r"2\.json has no masks, but .*1\.json does"):
        lvdet.read_detections(tmp_path)


@pytest.mark.parametrize("empty", ["0.json", "9.json"])
def test_an_empty_shard_goes_with_masks(empty: str, tmp_path: Path) -> None:
    save(tmp_path / empty, [])
    save(tmp_path / "1.json", MASKED)
    assert_holds(lvdet.read_detections(tmp_path), MASKED)


def test_an_empty_shard_goes_with_boxes(tmp_path: Path) -> None:
    save(tmp_path / "0.json", [])
    save(tmp_path / "1.json", RECORDS)
    assert_holds(lvdet.read_detections(tmp_path), RECORDS)


# Arrays


@pytest.mark.parametrize("save_npz", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("box", ["bbox", "box", "boxes"])
def test_npz(save_npz: Callable[..., None], box: str, tmp_path: Path) -> None:
    table = columns(RECORDS)
    table[box] = np.array(table.pop("bbox"))
    save_npz(tmp_path / "r.npz", **table)
    assert_holds(lvdet.read_detections(tmp_path / "r.npz"), RECORDS)


def test_npz_with_an_array_that_is_not_used(tmp_path: Path) -> None:
    """It is not read: NumPy would refuse to."""
    np.savez(tmp_path / "r.npz", **columns(RECORDS), other=np.array([None], dtype=object))
    assert_holds(lvdet.read_detections(tmp_path / "r.npz"), RECORDS)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.float64, np.float32])
def test_ids_of_any_number_type(dtype: Any) -> None:
    table = columns(RECORDS)
    table["image_id"] = np.array(table["image_id"], dtype=dtype)
    table["category_id"] = np.array(table["category_id"], dtype=dtype)
    assert_holds(lvdet.read_detections(table), RECORDS)


def test_a_dict_of_arrays() -> None:
    assert_holds(lvdet.read_detections(columns(RECORDS)), RECORDS)
    arrays = {name: np.array(values) for name, values in columns(RECORDS).items()}
    assert_holds(lvdet.read_detections(arrays), RECORDS)
    strided = {name: np.repeat(values, 2, axis=0)[::2] for name, values in arrays.items()}
    assert_holds(lvdet.read_detections(strided), RECORDS)
    segmentation = [record.get("segmentation") for record in MASKED]
    assert_holds(lvdet.read_detections(arrays | {"segmentation": segmentation}), MASKED)


def test_float32_arrays_keep_their_values() -> None:
    table = columns(RECORDS)
    table["score"] = np.array(table["score"], dtype=np.float32)
    dt = lvdet.read_detections(table)
    assert dt.score.dtype == np.float64
    assert dt.score.tolist() == [float(np.float32(record["score"])) for record in RECORDS]


def test_empty_arrays() -> None:
    table = {"image_id": [], "category_id": [], "score": [], "bbox": np.zeros((0, 4))}
    assert_holds(lvdet.read_detections(table), [])
    assert_holds(lvdet.read_detections([]), [])


# Records in Python


def test_a_list_of_dicts() -> None:
    assert_holds(lvdet.read_detections(MASKED), MASKED)
    assert_holds(lvdet.read_detections(tuple(MASKED)), MASKED)
    extra = [record | {"area": 5, "bbox": tuple(record["bbox"])} for record in MASKED]
    assert_holds(lvdet.read_detections(extra), MASKED)


def test_records_of_numpy_values() -> None:
    records = [
        {
            "image_id": np.int64(record["image_id"]),
            "category_id": np.uint16(record["category_id"]),
            "score": np.float64(record["score"]),
            "bbox": np.array(record["bbox"]),
            "segmentation": record.get("segmentation"),
        }
        for record in MASKED
    ]
    for record in records:
        if record["segmentation"] is not None:
            rle = record["segmentation"]
            record["segmentation"] = {
                "size": np.array(rle["size"]),
                "counts": rle["counts"].encode(),
            }
    assert_holds(lvdet.read_detections(records), MASKED)
    plain = {"size": (4, 3), "counts": np.array([1, 7, 4])}
    dt = lvdet.read_detections([records[1] | {"segmentation": plain}])
    expected = {"size": [4, 3], "counts": [1, 7, 4]}
    assert_holds(dt, [MASKED[1] | {"segmentation": expected}])


def test_a_table_is_itself() -> None:
    dt = lvdet.read_detections(RECORDS)
    assert lvdet.read_detections(dt) is dt


# Parquet


def own_schema(records: list[Json]) -> dict[str, Any]:
    box = np.array([record["bbox"] for record in records], dtype=np.float64).reshape(-1, 4)
    table = columns(records)
    del table["bbox"]
    return table | dict(zip("xywh", box.T, strict=True))


def fixed_list_schema(records: list[Json]) -> dict[str, Any]:
    table = columns(records)
    table["bbox"] = pa.array(table["bbox"], pa.list_(pa.float64(), 4))
    return table


@pytest.mark.parametrize("schema", [own_schema, columns, fixed_list_schema])
@pytest.mark.parametrize("row_group_size", [1, 2, 1000])
@pytest.mark.parametrize("name", ["r.parquet", "r.pq"])
def test_parquet(schema: Any, row_group_size: int, name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table(schema(RECORDS)), tmp_path / name, row_group_size=row_group_size)
    assert_holds(lvdet.read_detections(tmp_path / name), RECORDS)


@pytest.mark.parametrize("count", [1, 3])
def test_parquet_of_many_row_groups(count: int, tmp_path: Path) -> None:
    records = many_records(500)
    pq.write_table(pa.table(own_schema(records)), tmp_path / "r.parquet", row_group_size=7)
    with threads(count):
        assert_holds(lvdet.read_detections(tmp_path / "r.parquet"), records)


@pytest.mark.parametrize("counts", ["text", "bytes"])
def test_parquet_with_a_segmentation_column(counts: str, tmp_path: Path) -> None:
    values = [record.get("segmentation") for record in MASKED]
    if counts == "bytes":
        values = [v and v | {"counts": v["counts"].encode()} for v in values]
    table = pa.table(own_schema(MASKED) | {"segmentation": values})
    pq.write_table(table, tmp_path / "r.parquet", row_group_size=2)
    assert_holds(lvdet.read_detections(tmp_path / "r.parquet"), MASKED)
    dt = lvdet.read_detections(tmp_path / "r.parquet", masks=False)
    assert_holds(dt, RECORDS)


def test_parquet_of_large_masks_in_small_batches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    records = [MASKED[0] | {"score": float(row)} for row in range(100)]
    lvdet.write_detections(lvdet.read_detections(records), tmp_path / "r.parquet")
    monkeypatch.setattr(parquet, "MASK_BYTES", 400)
    tables = list(parquet_tables(tmp_path / "r.parquet", masks=True, update=None))
    assert {len(table) for table in tables[:-1]} <= set(range(5, 20))
    assert_holds(lvdet.read_detections(tmp_path / "r.parquet"), records)


def test_parquet_of_other_number_types(tmp_path: Path) -> None:
    table = own_schema(ROWS)
    table["image_id"] = pa.array(table["image_id"], pa.int32())
    table["category_id"] = pa.array(table["category_id"], pa.uint16())
    table["score"] = pa.array(table["score"], pa.float32())
    table["x"] = pa.array(table["x"], pa.float32())
    table["h"] = pa.array([4, 9])
    pq.write_table(pa.table(table | {"other": ["a", "b"]}), tmp_path / "r.parquet")
    expected = [row | {"bbox": [*row["bbox"][:3], h]} for row, h in zip(ROWS, (4, 9), strict=True)]
    assert_holds(lvdet.read_detections(tmp_path / "r.parquet"), expected)


def test_parquet_without_rows(tmp_path: Path) -> None:
    names = {"image_id": pa.int64(), "category_id": pa.int64(), "score": pa.float64()}
    schema = pa.schema(names | dict.fromkeys("xywh", pa.float64()))
    pq.write_table(schema.empty_table(), tmp_path / "r.parquet")
    assert_holds(lvdet.read_detections(tmp_path / "r.parquet"), [])


# Progress, threads, pipes

PACKED = [bytes, gzip.compress]


def test_progress_never_falls_and_ends_with_all(tmp_path: Path) -> None:
    records = many_records(200)
    files = [save(tmp_path / "r.json", records), tmp_path / "r.parquet"]
    pq.write_table(pa.table(own_schema(records)), files[1], row_group_size=50)
    for source in (files[:1], files[1:], files):
        seen: list[tuple[int, int]] = []
        watch = calling(lambda *news, seen=seen: seen.append(news))
        assert_holds(lvdet.read_detections(source, progress=watch), records * len(source))
        # Bytes; of one Parquet file alone, rows.
        size = 200 if source == files[1:] else sum(path.stat().st_size for path in source)
        assert {total for _, total in seen} == {size}
        assert seen[-1][0] == seen[-1][1]
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_progress_can_stop_the_reading(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    path = save(tmp_path / "r.json", many_records(200))
    before = threading.enumerate()
    with pytest.raises(KeyboardInterrupt):
        lvdet.read_detections(path, progress=calling(stop))
    assert threading.enumerate() == before


@pytest.mark.parametrize("pack", PACKED)
def test_a_named_pipe(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """`lvdet evaluate gt.json <(curl …)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def fill() -> None:
        with open(pipe, "wb") as file:
            file.write(pack(json.dumps(RECORDS).encode()))

    thread = threading.Thread(target=fill)
    thread.start()
    try:
        assert_holds(lvdet.read_detections(pipe), RECORDS)
    finally:
        thread.join()


@pytest.mark.parametrize("pack", PACKED)
def test_standard_input(pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    fake = io.TextIOWrapper(io.BytesIO(pack(json.dumps(RECORDS).encode())))
    monkeypatch.setattr("sys.stdin", fake)
    assert_holds(lvdet.read_detections("-"), RECORDS)


def test_parquet_needs_no_pandas(tmp_path: Path) -> None:
    """Though it is installed here: importing it takes as long as reading a million rows."""
    assert importlib.util.find_spec("pandas") is not None
    script = """
import sys, numpy, lvdet
table = lvdet.Detections.from_arrays([1, 2], [3, 4], [0.5, 0.25], numpy.ones((2, 4)))
lvdet.write_detections(table, sys.argv[1])
assert lvdet.read_detections(sys.argv[1]).score.tolist() == [0.5, 0.25]
print(*sys.modules)
"""
    modules = python_program(script, tmp_path / "some.parquet").good().out.split()
    assert "pyarrow" in modules
    assert "pandas" not in modules
