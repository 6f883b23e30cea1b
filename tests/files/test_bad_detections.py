"""Unusable results files: one line that names the file and the place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import lvdet
from files.broken_json import VALUES, named
from files.broken_masks import SEGMENTATIONS
from files.record_files import ROWS, WITH_SCORE, Json, assert_holds, refused, save
from thread_setting import threads

RECORD = json.dumps(ROWS[0])
MASK = {"size": [4, 3], "counts": "174"}
WHOLE = [
    ROWS[0] | {"segmentation": MASK, "note": 'a "q" \\ é'},
    ROWS[1] | {"segmentation": [[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]], "deep": [{"a": [None]}, {}]},
]


def with_row(record: Json | str) -> str:
    """A good record, then this one."""
    text = record if isinstance(record, str) else json.dumps(record)
    return f"[{RECORD}, {text}]"


# Cut off


@pytest.mark.parametrize("count", [1, 2])
def test_every_prefix_of_a_list(count: int, tmp_path: Path) -> None:
    text = json.dumps(WHOLE, indent=1)
    path = tmp_path / "r.json"
    for cut in range(len(text)):
        save(path, text[:cut])
        with threads(count), pytest.raises(lvdet.InputError) as caught:
            lvdet.read_detections(path)
        assert str(caught.value).startswith(f"{path}, ")
    assert_holds(lvdet.read_detections(save(path, text)), WHOLE)


def test_every_prefix_of_lines(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(record) for record in WHOLE) + "\n"
    path = tmp_path / "r.jsonl"
    whole = 0
    for cut in range(1, len(text) + 1):
        save(path, text[:cut])
        try:
            records = [json.loads(line) for line in text[:cut].splitlines()]
        except ValueError:
            with pytest.raises(lvdet.InputError, match=r"truncated|byte"):
                lvdet.read_detections(path)
        else:
            assert_holds(lvdet.read_detections(path), records)
            whole += 1
    assert whole == 4  # each record with and without its line's end


def test_every_prefix_of_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(WHOLE).encode())
    path = tmp_path / "r.json.gz"
    for cut in range(len(packed)):
        refused(save(path, packed[:cut]))
    assert_holds(lvdet.read_detections(save(path, packed)), WHOLE)


def test_a_cut_file_names_its_last_row(tmp_path: Path) -> None:
    text = json.dumps(WHOLE * 5)[:-30]
    refused(save(tmp_path / "r.json", text), "row 9", f"byte {len(text):,}", "truncated")


@pytest.mark.parametrize("text", ["", " ", "\n\r\n\t "])
@pytest.mark.parametrize("name", ["r.json", "r.json.gz"])
def test_nothing_in_the_file(text: str, name: str, tmp_path: Path) -> None:
    content = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
    refused(save(tmp_path / name, content), "the file is empty")


# Not JSON


@pytest.mark.parametrize("text", VALUES, ids=named)
@pytest.mark.parametrize("place", ["score", "item", "other", "nested"])
def test_a_value_that_is_not_json(text: str, place: str, tmp_path: Path) -> None:
    record = {
        "score": WITH_SCORE % text,
        "item": f'{{"image_id": 1, "category_id": 2, "bbox": [1, {text}, 3, 4], "score": 1}}',
        "other": f'{{"other": {text}, {RECORD[1:]}',
        "nested": f'{RECORD[:-1]}, "other": [{{"a": {text}}}]}}',
    }[place]
    whole = with_row(record)
    with pytest.raises(json.JSONDecodeError):
        json.loads(whole)
    refused(save(tmp_path / "r.json", whole), "row 1, byte ")


STRUCTURES = [
    "[R,]", "[,R]", "[R R]", "[R;R]", "[R}", "[R, ]", "[R,,R]", "[R]]", "[R][R]", "[R] x",
    "[R], [R]", "[R", "[R,", "R,R", "R R", "R\nR,", "R\n[R]", "(R)", "x[R]", '[R, {"image_id" 1}]',
    "[R, {,}]", "[R, {]", '[R, {"a": 1,}]', '[R, {"a"}]', "[R, {'a': 1}]", "[R, R\x00]", "\x00[R]",
    "[R] \x00", "[R]\x00 [",
]  # fmt: skip


@pytest.mark.parametrize("text", STRUCTURES, ids=named)
def test_a_list_that_is_not_json(text: str, tmp_path: Path) -> None:
    whole = text.replace("R", RECORD)
    with pytest.raises(json.JSONDecodeError):
        json.loads(whole)
    refused(save(tmp_path / "r.json", whole), "byte ")


BOXES = [
    "1.5, 2.5, 3.5, 4.5]",
    "[1.5, 2.5, 3.5, 4.5",
    "[1.5 2.5, 3.5, 4.5]",
    "[1.5, 2.5, 3.5, 4.5,]",
]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("before", [RECORD, RECORD.replace(", ", ","), RECORD[:-1] + ', "id": 1}'])
def test_a_box_that_is_not_json(before: str, box: str, tmp_path: Path) -> None:
    record = f'{{"image_id": 1, "category_id": 2, "bbox": {box}, "score": 1}}'
    with pytest.raises(json.JSONDecodeError):
        json.loads(record)
    refused(save(tmp_path / "r.json", f"[{before}, {record}]"), "row 1, byte ")


@pytest.mark.parametrize("item", ["1", "null", '"a"', "[]", "[1, 2]", "true", "NaN", "-1.5"])
def test_a_record_that_is_no_object(item: str, tmp_path: Path) -> None:
    refused(save(tmp_path / "r.json", with_row(item)), "row 1, byte ", "expected '{'")
    lines = f"{RECORD}\n{item}\n"
    refused(save(tmp_path / "r.jsonl", lines), "row 1, byte ", "expected '{'")


@pytest.mark.parametrize("text", ["1", '"a"', "null", "true", "-", "\\", "a,b\n1,2\n", "<html>"])
def test_a_file_that_is_no_list(text: str, tmp_path: Path) -> None:
    refused(save(tmp_path / "r.json", text), "byte 0", "expected a list of detections")


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40,
        bytes(range(256)),
        b"\0" * 1000,
        b"\xff\xfe[\0]\0",
        "\ufeff[]".encode(),
        b"[\xff]",
        b"[" + b"\xf0" * 5000,
        b"PK\x03\x04" + b"x" * 100,
    ],
    ids=["png", "all bytes", "zeros", "UTF-16", "BOM", "no UTF-8", "high bytes", "zip"],
)
def test_binary_files(content: bytes, tmp_path: Path) -> None:
    refused(save(tmp_path / "r.json", content))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000,
        '[{"a":' * 100_000,
        '[{"a": ' + "[" * 100_000 + "]" * 100_000 + "}]",
        '[{"a": ' + '{"b":' * 100_000 + "1" + "}" * 100_000 + "}]",
        '[{"bbox": ' + "[" * 100_000 + "]" * 100_000 + "}]",
        '[{"segmentation": ' + "[" * 100_000 + "]" * 100_000 + "}]",
        '[{"segmentation": {"counts": ' + "[" * 100_000 + "]" * 100_000 + "}}]",
        '[{"image_id": ' + "[" * 100_000 + "]" * 100_000 + "}]",
    ],
    ids=range(10),
)
def test_deep_nesting(text: str, tmp_path: Path) -> None:
    refused(save(tmp_path / "r.json", text))


# Records

WRONG: list[tuple[str, Any, str]] = [
    *((key, None, f"{key} is null, expected a") for key in ("image_id", "category_id", "score")),
    *((key, "1", f"{key} is a string, expected a") for key in ("category_id", "score")),
    ("image_id", "a", 'image_id "a" is not a number'),
    *((key, True, f"{key} is true or false, expected a") for key in ("category_id", "score")),
    *((key, [1], f"{key} is a list, expected a") for key in ("image_id", "score")),
    *((key, {}, f"{key} is an object, expected a") for key in ("category_id", "score")),
    ("image_id", 1.5, "image_id is 1.5, expected an integer"),
    ("image_id", 2**63, "image_id is 9223372036854775808, expected an integer"),
    ("image_id", -(2**63) - 1, "image_id is -9223372036854775809, expected an integer"),
    ("category_id", 10**40, "expected an integer"),
    ("category_id", 1e30, "category_id is 1e+30, expected an integer"),
    ("image_id", float("nan"), "image_id is NaN, expected an integer"),
    ("category_id", float("inf"), "category_id is Infinity, expected an integer"),
    ("score", float("nan"), "score is nan, expected a finite number"),
    ("score", float("inf"), "score is inf, expected a finite number"),
    ("score", float("-inf"), "score is -inf, expected a finite number"),
    ("bbox", None, "bbox is null, expected a list of numbers"),
    ("bbox", 5, "bbox is a number, expected a list of numbers"),
    ("bbox", "1 2 3 4", "bbox is a string, expected a list of numbers"),
    ("bbox", {"x": 1}, "bbox is an object, expected a list of numbers"),
    ("bbox", [], "bbox has 0 numbers, expected 4 [x, y, w, h]"),
    ("bbox", [1, 2, 3], "bbox has 3 numbers, expected 4 [x, y, w, h]"),
    ("bbox", [1, 2, 3, 4, 5], "bbox has 5 numbers, expected 4 [x, y, w, h]"),
    ("bbox", [1, 2, "3", 4], "an item of bbox is a string, expected a number"),
    ("bbox", [1, None, 3, 4], "an item of bbox is null, expected a number"),
    ("bbox", [[1, 2, 3, 4]], "an item of bbox is a list, expected a number"),
    ("bbox", [1, 2, float("nan"), 4], "bbox is [1, 2, nan, 4], expected finite numbers"),
    ("bbox", [float("-inf"), 2, 3, 4], "bbox is [-inf, 2, 3, 4], expected finite numbers"),
    ("bbox", [1, 2, -3, 4], "bbox is [1, 2, -3, 4], expected a non-negative width and height"),
    ("bbox", [1, 2, 3, -1e-9], "expected a non-negative width and height"),
]


@pytest.mark.parametrize(("key", "value", "says"), WRONG)
def test_a_field_of_the_wrong_kind(key: str, value: Any, says: str, tmp_path: Path) -> None:
    path = save(tmp_path / "r.json", with_row(ROWS[1] | {key: value}))
    refused(path, "row 1", says)
    lines = f"{RECORD}\n{json.dumps(ROWS[1] | {key: value})}"
    refused(save(tmp_path / "r.jsonl", lines), "row 1", says)


@pytest.mark.parametrize("key", ["image_id", "category_id", "score"])
def test_a_missing_key(key: str, tmp_path: Path) -> None:
    record = {name: value for name, value in ROWS[1].items() if name != key}
    byte = len(RECORD) + 3
    path = save(tmp_path / "r.json", with_row(record))
    refused(path, f"row 1, byte {byte}", f"{key} is missing")


def test_no_place(tmp_path: Path) -> None:
    record = {name: value for name, value in ROWS[1].items() if name != "bbox"}
    path = save(tmp_path / "r.json", with_row(record))
    refused(path, "row 1, byte ", "has neither bbox nor segmentation")
    with pytest.raises(lvdet.InputError, match="neither bbox nor segmentation"):
        lvdet.read_detections(path, masks=False)


def test_an_empty_record(tmp_path: Path) -> None:
    refused(save(tmp_path / "r.json", with_row({})), "row 1, byte ", "image_id is missing")


def test_the_byte_is_where_the_value_stands(tmp_path: Path) -> None:
    text = with_row(ROWS[1] | {"score": "high"})
    byte = text.index('"high"')
    refused(save(tmp_path / "r.json", text), f"byte {byte}:")


@pytest.mark.parametrize("run", [-7, 2**40, 1.5])
def test_the_byte_is_where_the_run_stands(run: float, tmp_path: Path) -> None:
    record = ROWS[1] | {"segmentation": {"size": [4, 3], "counts": [5, run, 7]}}
    text = with_row(record)
    byte = text.index(f"{run}, 7")
    refused(
        save(tmp_path / "r.json", text), f"byte {byte}: RLE has a run that is not a valid length"
    )


# Masks


@pytest.mark.parametrize(("segmentation", "says"), SEGMENTATIONS)
@pytest.mark.parametrize("box", [True, False])
def test_a_mask_that_cannot_be(segmentation: Any, says: str, box: bool, tmp_path: Path) -> None:
    record = ROWS[1] | {"segmentation": segmentation}
    if not box:
        del record["bbox"]
    path = save(tmp_path / "r.json", with_row(record))
    refused(path, "row 1, byte ", says)
    if box:
        assert_holds(lvdet.read_detections(path, masks=False), [ROWS[0], record], masks=False)


def test_the_first_of_many_problems_is_told(tmp_path: Path) -> None:
    rows = [ROWS[0] | {"score": str(row)} if row % 2 else ROWS[0] for row in range(1, 40_001)]
    text = refused(save(tmp_path / "r.json", rows), "score is a string")
    assert "row 0" in text


def test_rows_are_counted_with_separators(tmp_path: Path) -> None:
    rows = [ROWS[0]] * 1_234 + [ROWS[0] | {"bbox": [1, 2, 3]}]
    refused(save(tmp_path / "r.json", rows), "row 1,234, byte ")


# The other file, no file


def test_an_annotation_file(tmp_path: Path) -> None:
    gt, _ = lvdet.simulate(images=3, classes=2)
    lvdet.write_ground_truth(gt, tmp_path / "gt.json")
    refused(tmp_path / "gt.json", "this is an annotation file, expected a list of detections")
    text = '{"info": {}, "categories": [], "annotations": []}'
    refused(save(tmp_path / "gt.json", text), "this is an annotation file")


def test_no_such_file(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere.json", "no such file")
    refused(f"{tmp_path}/nowhere-*.json", "no files match")
    with pytest.raises(lvdet.InputError, match="nowhere"):
        lvdet.read_detections([save(tmp_path / "r.json", ROWS), tmp_path / "nowhere.json"])


def test_a_folder_without_files(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    (folder / "inner").mkdir(parents=True)
    save(folder / ".hidden", "[]")
    refused(folder, "the folder is empty")


def test_a_shard_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    save(folder / "a.json", ROWS)
    save(folder / "b.json", "[{]")
    with pytest.raises(lvdet.InputError, match=r"b\.json, row 0, byte 2"):
        lvdet.read_detections(folder)


@pytest.mark.skipif("os.geteuid() == 0", reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = save(tmp_path / "r.json", ROWS)
    path.chmod(0)
    refused(path, "Permission denied")
