"""Image ids that are texts: the same results with plain ids are the oracle."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lvdet
from files.record_files import Json, assert_holds, one_line, refused, save
from lvdet.files.convert import convert
from lvdet.files.known_images import KnownImages
from lvdet.files.stream import detection_tables
from lvdet.plausibility.check import check

#: Images as COCO, LVIS v1 and LVIS minival with inserted names have them.
IMAGES: list[Json] = [
    {"id": 7, "file_name": "000000000042.jpg"},
    {"id": 8, "coco_url": "http://images.cocodataset.org/train2017/000000000009.jpg"},
    {
        "id": 9,
        "coco_url": "http://images.cocodataset.org/val2017/000000397133.jpg",
        "file_name": "val2017/000000397133.jpg",
    },
    {"id": 10, "file_name": "val2017/a/frame.01.png"},
    {"id": 11, "file_name": "C:\\data\\é 𝄞\n.jpg"},
    {"id": 12, "file_name": "12.jpg"},
    {"id": 13, "file_name": "13"},
    {"id": 14},
    {"id": 15, "file_name": "a/same.jpg"},
    {"id": 16, "file_name": "b/same.jpg"},
    {"id": 17, "file_name": "18.jpg"},
    {"id": 18, "file_name": "x/y.jpg"},
    {"id": 19, "file_name": "y.jpg"},
    {"id": 20, "file_name": "twice.jpg"},
    {"id": 21, "file_name": "twice.png"},
    {"id": 42},
]
NAMED = [
    ("000000000042", 7),
    ("000000000042.jpg", 7),
    ("val2017/000000000042.jpg", 7),
    ("000000000009", 8),
    ("train2017/000000000009", 8),
    ("http://images.cocodataset.org/train2017/000000000009.jpg", 8),
    ("000000397133", 9),
    ("000000397133.jpg", 9),
    ("val2017/000000397133", 9),
    ("coco/val2017/000000397133.jpg", 9),
    ("./val2017//000000397133.jpg", 9),
    ("val2017\\000000397133.jpg", 9),
    ("frame.01", 10),
    ("a/frame.01.png", 10),
    ("é 𝄞\n", 11),
    ("12", 12),
    ("13", 13),
    ("14", 14),
    ("0000014", 14),
    ("a/same", 15),
    ("b/same.jpg", 16),
    ("z/b/same.jpg", 16),
    ("000018", 18),
    ("42", 42),
    ("18.jpg", 17),
    ("x/y", 18),
    ("y.jpg", 19),
    ("999", 999),
    ("-3", -3),
]
REFUSED = [
    ("same", ("image 15", "image 16", "a/same.jpg")),
    ("same.jpg", ("image 15", "image 16")),
    ("twice", ("image 20", "image 21")),
    ("18", ("image 17", "image 18", "file name", "id")),
    ("y", ("image 18", "image 19")),
    ("img_7", ('"img_7"', "neither an id nor a file name")),
    ("c/same.jpg", ("c/same.jpg", "neither")),
    ("train2017/000000397133.jpg", ("neither",)),
    ("ame.jpg", ("neither",)),
    ("frame", ("neither",)),
    ("", ("neither",)),
    ("a/", ("neither",)),
    ("9" * 30, ("neither",)),
    (" 12", ("neither",)),
    ("1e1", ("neither",)),
    ("q\n\u2028\r\x00", ("\\u000a\\u2028\\u000d\\u0000",)),
    ("é" * 5_000, ("é" * 40 + '"…',)),
]
KINDS = ["json", "escaped", "lines", "gzip", "parquet", "categorical", "records", "arrays", "npz"]


def truth(folder: Path) -> Path:
    """Annotations with one object in each image, COCO's way."""
    return save(
        folder / "gt.json",
        {
            "images": [{"height": 50, "width": 40} | image for image in IMAGES],
            "categories": [{"id": 3, "name": "a"}, {"id": 5, "name": "b"}],
            "annotations": [
                {
                    "id": image["id"],
                    "image_id": image["id"],
                    "category_id": 3 + 2 * (image["id"] % 2),
                    "bbox": [1, 2, 10, 20],
                    "area": 200,
                    "iscrowd": 0,
                }
                for image in IMAGES
            ],
        },
    )


def rows(ids: list[Any]) -> list[Json]:
    rng = np.random.default_rng(5)
    return [
        {
            "image_id": image,
            "category_id": 3 + 2 * int(rng.integers(2)),
            "bbox": [1.0, 2.0, 10.0, float(rng.integers(8, 25))],
            "score": float(rng.random()),
        }
        for image in ids
    ]


def source(records: list[Json], kind: str, folder: Path) -> Any:
    """The records in a form in which results come."""
    if kind == "records":
        return records
    if kind == "json":
        return save(folder / "r.json", json.dumps(records, ensure_ascii=False))
    if kind == "escaped":
        text = json.dumps(records)
        for name in {str(record["image_id"]) for record in records}:
            plain = json.dumps(name)
            every = "".join(f"\\u{ord(c):04x}" for c in name if ord(c) < 0x10000)
            if len(every) == 6 * len(name):
                text = text.replace(f'"image_id": {plain}', f'"image_id": "{every}"')
        return save(folder / "e.json", text)
    lines = "".join(json.dumps(record) + "\n" for record in records)
    if kind == "lines":
        return save(folder / "r.jsonl", lines)
    if kind == "gzip":
        return save(folder / "r.jsonl.gz", gzip.compress(lines.encode()))
    columns = {key: [record[key] for record in records] for key in records[0]}
    if kind == "arrays":
        return columns | {"image_id": np.array(columns["image_id"], dtype=object)}
    if kind == "npz":
        np.savez(folder / "r.npz", **{key: np.array(value) for key, value in columns.items()})
        return folder / "r.npz"
    table = pa.table(columns)
    if kind == "categorical":
        table = table.set_column(0, "image_id", table.column(0).dictionary_encode())
    pq.write_table(table, folder / "r.parquet", row_group_size=9)
    return folder / "r.parquet"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_name_images(kind: str, tmp_path: Path, pieces: None) -> None:
    gt = truth(tmp_path)
    named = [pair for pair in NAMED for _ in range(3)]
    records = rows([text for text, _ in named])
    plain = [row | {"image_id": image} for row, (_, image) in zip(records, named, strict=True)]
    given = source(records, kind, tmp_path)
    assert_holds(lvdet.read_detections(given, images=gt), plain)
    assert_holds(lvdet.read_detections(given, images=lvdet.read_ground_truth(gt)), plain)
    if not isinstance(given, Path):
        return
    tables = list(detection_tables(given, images=KnownImages.of(gt)))
    ids = np.concatenate([table.image_ids[table.image] for table in tables])
    assert ids.tolist() == [image for _, image in named]
    convert(given, tmp_path / "plain.jsonl", images=gt)
    assert_holds(lvdet.read_detections(tmp_path / "plain.jsonl"), plain)


@pytest.mark.parametrize("kind", KINDS)
def test_an_evaluation_is_that_of_plain_ids(kind: str, tmp_path: Path) -> None:
    gt = truth(tmp_path)
    named = [pair for pair in NAMED if pair[1] in range(7, 22)]
    records = rows([text for text, _ in named])
    plain = [row | {"image_id": image} for row, (_, image) in zip(records, named, strict=True)]
    expected = lvdet.evaluate(gt, save(tmp_path / "plain.json", plain)).to_dict()["protocols"]
    given = source(records, kind, tmp_path)
    assert lvdet.evaluate(gt, given).to_dict()["protocols"] == expected
    assert (
        lvdet.sweep(gt, given, dets_per_image=[1, 2]).to_dict()["rows"]
        == (lvdet.sweep(gt, tmp_path / "plain.json", dets_per_image=[1, 2]).to_dict()["rows"])
    )
    assert expected["old"]["AP"] > 0.1
    if isinstance(given, Path):
        assert [problem.row for problem in check(gt, given) if problem.row is not None] == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("text", "says"), REFUSED, ids=range(len(REFUSED)))
def test_texts_that_are_refused(
    kind: str, text: str, says: tuple[str, ...], tmp_path: Path
) -> None:
    if kind in ("npz", "parquet") and text.endswith("\0"):
        pytest.skip("NumPy cuts off a NUL at the end")
    gt = truth(tmp_path)
    given = source(rows(["13", "000000000042", text, "13"]), kind, tmp_path)
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.evaluate(gt, given)
    message = one_line(caught.value)
    for words in ("row 2", *says):
        assert words in message
    assert len(message.encode()) < 400


def test_texts_beside_numbers(tmp_path: Path) -> None:
    gt = truth(tmp_path)
    ids = [7, "000000000042", 7.0, "12", 12, 2**60 + 1, "frame.01", 10]
    plain = [7, 7, 7, 12, 12, 2**60 + 1, 10, 10]
    records = rows(ids)
    for kind in ("json", "lines", "records"):
        table = lvdet.read_detections(source(records, kind, tmp_path), images=gt)
        assert table.image_ids[table.image].tolist() == plain
    columns = {key: [row[key] for row in records] for key in records[0]}
    columns["image_id"][2] = 7
    table = lvdet.read_detections(columns, images=gt)
    assert table.image_ids[table.image].tolist() == plain


@pytest.mark.parametrize("kind", KINDS)
def test_without_annotations_digits_are_ids(kind: str, tmp_path: Path) -> None:
    records = rows(["000000012345", "7", "-2"])
    plain = [row | {"image_id": int(row["image_id"])} for row in records]
    assert_holds(lvdet.read_detections(source(records, kind, tmp_path)), plain)
    given = source(rows(["1", "img_7"]), kind, tmp_path)
    with pytest.raises(lvdet.InputError, match=r"row 1.*img_7.*images=GT, --images GT"):
        lvdet.read_detections(given)
    if isinstance(given, Path):
        refused(given, "row 1", '"img_7" is not a number')


def test_a_text_that_is_no_utf8(tmp_path: Path) -> None:
    gt = truth(tmp_path)
    text = json.dumps(rows(["NAME"])).encode().replace(b"NAME", b"a\xff\xed\xa0\x80")
    with pytest.raises(lvdet.InputError, match=r'"a\\xff\\xed\\xa0\\x80" is neither'):
        lvdet.evaluate(gt, save(tmp_path / "r.json", text))
    with pytest.raises(lvdet.InputError, match="neither"):
        lvdet.evaluate(gt, rows(["\ud800"]))


@pytest.mark.parametrize("kind", ["json", "lines", "parquet", "records", "arrays", "npz"])
def test_ids_as_floats(kind: str, tmp_path: Path) -> None:
    records = [row | {"category_id": float(row["category_id"])} for row in rows([12.0, 7.0])]
    assert_holds(lvdet.read_detections(source(records, kind, tmp_path)), records)
    for wrong in (12.5, float("nan"), float("inf"), 1e300):
        for key in ("image_id", "category_id"):
            given = source([records[0], records[1] | {key: wrong}], kind, tmp_path)
            with pytest.raises(lvdet.InputError, match=f"row 1.*{key}"):
                lvdet.read_detections(given)


def test_every_unknown_name_is_listed(tmp_path: Path) -> None:
    gt = truth(tmp_path)
    given = save(tmp_path / "r.json", rows(["13", "a", "12", "b", "999"]))
    found = [(problem.row, problem.what) for problem in check(gt, given)]
    assert [row for row, _ in found] == [1, 3, 4]
    assert found[2][1] == f"image_id 999 is not in {gt} (1 detection)"


def test_numbers_of_file_names_are_named(tmp_path: Path) -> None:
    """Ultralytics writes the number in a file's name, whatever the image's id."""
    gt = save(
        tmp_path / "gt.json",
        {
            "images": [{"id": 5, "height": 9, "width": 9, "file_name": "val/000000000099.jpg"}],
            "categories": [{"id": 3, "name": "a"}],
            "annotations": [],
        },
    )
    path = save(tmp_path / "r.json", json.dumps(rows([99, 98])))
    texts = [problem.what for problem in check(gt, path)]
    first, second = (text for text in texts if text.startswith("image_id"))
    assert first.endswith(
        "(1 detection); image 5 is val/000000000099.jpg: write image ids, not file names"
    )
    assert second == f"image_id 98 is not in {gt} (1 detection)"
    with pytest.raises(lvdet.InputError, match=r"image 5 is val/000000000099\.jpg"):
        lvdet.evaluate(gt, path)
