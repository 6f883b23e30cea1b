"""Annotation files that cannot be used."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import lvdet
from files.annotation_files import assert_holds_truth, coco, lvis
from files.broken_json import VALUES, named
from files.record_files import ROWS, Json, refused, save


def refused_truth(path: Path, *says: str) -> str:
    return refused(path, *says, read=lvdet.read_ground_truth)


def changed(table: str, row: int, **values: Any) -> Json:
    """An LVIS file with one record changed."""
    content = lvis()
    content[table][row] |= values
    return content


SMALL = {
    "info": {"a": ["},{", '\\"', None, 1.5]},
    "images": [{"id": 1, "height": 4, "width": 3, "file_name": "é.jpg"}],
    "annotations": [
        {
            "id": 1,
            "image_id": 1,
            "category_id": 2,
            "bbox": [0, 1, 2.5, 3],
            "area": 7,
            "iscrowd": 0,
            "segmentation": {"size": [4, 3], "counts": "174"},
        }
    ],
    "categories": [{"id": 2, "name": 'a "b"'}],
    "licenses": [],
}


def test_every_prefix(tmp_path: Path) -> None:
    path = tmp_path / "gt.json"
    text = json.dumps(SMALL)
    for cut in range(len(text)):
        save(path, text[:cut])
        with pytest.raises(lvdet.InputError) as caught:
            lvdet.read_ground_truth(path)
        assert str(caught.value).startswith(f"{path}, ")
        assert "byte" in str(caught.value)
    assert_holds_truth(lvdet.read_ground_truth(save(path, text)), SMALL)


def test_every_prefix_of_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(SMALL).encode())
    for cut in range(len(packed)):
        refused_truth(save(tmp_path / "gt.json.gz", packed[:cut]))


# Not JSON


@pytest.mark.parametrize("text", VALUES, ids=named)
@pytest.mark.parametrize("place", ["field", "other"])
@pytest.mark.parametrize("table", ["images", "annotations", "categories"])
def test_a_value_that_is_not_json(table: str, place: str, text: str, tmp_path: Path) -> None:
    content = copy.deepcopy(SMALL)
    content[table][0]["id" if place == "field" else "other"] = "HERE"
    whole = json.dumps(content).replace('"HERE"', text)
    with pytest.raises(json.JSONDecodeError):
        json.loads(whole)
    refused_truth(save(tmp_path / "gt.json", whole), "byte ")


@pytest.mark.parametrize("text", [*VALUES, '{"a": [}', '"a'], ids=named)
def test_a_value_beside_the_lists_that_is_not_json(text: str, tmp_path: Path) -> None:
    whole = json.dumps(SMALL | {"info": "HERE"}).replace('"HERE"', text)
    with pytest.raises(json.JSONDecodeError):
        json.loads(whole)
    refused_truth(save(tmp_path / "gt.json", whole))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text + "x",
        lambda text: text + "{}",
        lambda text: text + "]",
        lambda text: text[:-1] + "]",
        lambda text: text[:-1] + ",}",
        lambda text: "{," + text[1:],
        lambda text: text.replace('"images":', '"images"'),
        lambda text: text.replace('"images":', "images:"),
        lambda text: text.replace('"images":', "'images':"),
        lambda text: text.replace(', "images"', ' "images"'),
        lambda text: text.replace(', "images"', ',, "images"'),
        lambda text: text.replace('}], "annotations"', '},], "annotations"'),
        lambda text: text.replace('}], "annotations"', '}, "annotations"'),
        lambda text: text + "\0{",
        lambda text: '{"\\uZZZZ": 1, ' + text[1:],
        lambda text: '{"a\x01": 1, ' + text[1:],
    ],
    ids=range(16),
)
def test_an_object_that_is_not_json(change: Any, tmp_path: Path) -> None:
    whole = change(json.dumps(SMALL))
    with pytest.raises(json.JSONDecodeError):
        json.loads(whole)
    refused_truth(save(tmp_path / "gt.json", whole))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        (" \r\n", "the file is empty"),
        ("1", "expected an annotation file"),
        ('"a"', "expected an annotation file"),
        ("null", "expected an annotation file"),
        ("\ufeff{}", "expected an annotation file"),
        ("\x89PNG\r\n", "expected an annotation file"),
        ("[]", "this is a list, like a results file"),
        (json.dumps(ROWS), "this is a list, like a results file"),
        ("\n".join(json.dumps(row) for row in ROWS), "byte"),
        (json.dumps(ROWS[0]), "no 'images' list: not an annotation file"),
        ("{}", "no 'images' list: not an annotation file"),
        ('{"a": 1}', "no 'images' list: not an annotation file"),
        ('{"images": {}}', "expected a list"),
        ('{"annotations": null}', "expected a list"),
        ('{"categories": 5}', "expected a list"),
        ('{"images": [], "images": []}', "the file contains this list twice"),
        ('{"images": [1]}', "expected '{'"),
        ('{"images": [[]]}', "expected '{'"),
        ('{"images": [null]}', "expected '{'"),
        ("[" * 100_000, "a list"),
        ('{"a":' * 100_000, "nested more than"),
        ('{"info":' + "[" * 100_000 + "]" * 100_000 + "}", "nested more than"),
        ('{"images": [' + '{"a":[' * 100_000, "byte"),
        ('{"images": [{"a":' + "[" * 100_000 + "]" * 100_000 + "}]}", "nested more than"),
        ('{"annotations": [{"bbox":' + "[" * 100_000 + "]" * 100_000 + "}]}", "nested more than"),
    ],
    ids=range(26),
)
def test_a_file_of_another_kind(text: str, says: str, tmp_path: Path) -> None:
    refused_truth(save(tmp_path / "gt.json", text), says)


@pytest.mark.parametrize("key", ["images", "annotations", "categories"])
def test_a_missing_list(key: str, tmp_path: Path) -> None:
    content = {name: value for name, value in coco().items() if name != key}
    refused_truth(save(tmp_path / "gt.json", content), f"no '{key}' list")


# Records

WRONG: list[tuple[str, str, Any, str]] = [
    *(
        (table, "id", value, says)
        for table in ("images", "annotations", "categories")
        for value, says in (
            (None, "id is null, expected an integer"),
            ("5", "id is a string, expected an integer"),
            (5.5, "id is 5.5, expected an integer"),
            (2**63, "id is 9223372036854775808, expected an integer"),
            (True, "id is true or false, expected an integer"),
        )
    ),
    ("images", "height", None, "height is null"),
    ("images", "height", -1, "height is -1, expected 0 to 1,000,000"),
    ("images", "width", 2**40, "expected 0 to 1,000,000"),
    ("images", "width", 1.5, "width is 1.5, expected an integer"),
    ("images", "file_name", 5, "file_name is a number, expected a string"),
    ("images", "coco_url", [], "coco_url is a list, expected a string"),
    ("images", "neg_category_ids", None, "neg_category_ids is null, expected a list of numbers"),
    ("images", "neg_category_ids", 5, "neg_category_ids is a number, expected a list"),
    ("images", "neg_category_ids", ["a"], "an item of neg_category_ids is a string"),
    ("images", "neg_category_ids", [1.5], "an item of neg_category_ids is not an integer"),
    ("images", "not_exhaustive_category_ids", {}, "not_exhaustive_category_ids is an object"),
    ("categories", "name", None, "name is null, expected a string"),
    ("categories", "name", 5, "name is a number, expected a string"),
    ("categories", "frequency", "x", 'frequency is not "r", "c" or "f"'),
    ("categories", "frequency", "rr", 'frequency is not "r", "c" or "f"'),
    ("categories", "frequency", 5, "frequency is a number, expected a string"),
    ("annotations", "image_id", "1", "image_id is a string"),
    ("annotations", "image_id", 999, "image_id 999 is not in the file's list of images"),
    ("annotations", "category_id", None, "category_id is null"),
    ("annotations", "category_id", 999, "category_id 999 is not in the file's list of categories"),
    ("annotations", "bbox", None, "bbox is null, expected a list of numbers"),
    ("annotations", "bbox", [1, 2, 3], "bbox has 3 numbers, expected 4 [x, y, w, h]"),
    ("annotations", "bbox", [1, 2, 3, 4, 5], "bbox has 5 numbers, expected 4 [x, y, w, h]"),
    ("annotations", "bbox", [1, "2", 3, 4], "an item of bbox is a string"),
    ("annotations", "bbox", [1, 2, -3, 4], "bbox is [1, 2, -3, 4]"),
    ("annotations", "bbox", [float("nan"), 2, 3, 4], "expected finite numbers"),
    ("annotations", "area", None, "area is null, expected a number"),
    ("annotations", "area", "5", "area is a string, expected a number"),
    ("annotations", "area", -1, "area -1, expected non-negative sizes"),
    ("annotations", "area", float("inf"), "area inf, expected finite numbers"),
    ("annotations", "iscrowd", None, "iscrowd is null, expected 0 or 1"),
    ("annotations", "iscrowd", "1", "iscrowd is a string, expected 0 or 1"),
    ("annotations", "ignore", [], "ignore is a list, expected 0 or 1"),
    ("annotations", "segmentation", 5, "segmentation is a number, expected RLE"),
    ("annotations", "segmentation", [[1, 2, 3, 4]], "a polygon of segmentation has 4 numbers"),
    ("annotations", "segmentation", [[1, 2, 3, 4, 5, 6, 7]], "has 7 numbers"),
    ("annotations", "segmentation", [[1, 2, 3, 4, 5, float("inf")]], "beyond 1,000,000 pixels"),
    ("annotations", "segmentation", {"size": [50, 20]}, "RLE has no counts"),
    (
        "annotations",
        "segmentation",
        {"size": [50, 20], "counts": [999]},
        "do not add up to its size",
    ),
    ("annotations", "segmentation", {"size": [50, 20], "counts": "z"}, "counts are corrupt"),
    (
        "annotations",
        "segmentation",
        {"size": [20, 50], "counts": [1000]},
        "mask is 20 x 50, but its image 4 is 50 x 20",
    ),
]
NAMES = {"images": "image", "annotations": "annotation", "categories": "category"}


@pytest.mark.parametrize(("table", "key", "value", "says"), WRONG)
def test_a_field_of_the_wrong_kind(
    table: str, key: str, value: Any, says: str, tmp_path: Path
) -> None:
    content = changed(table, 2, **{key: value})
    refused_truth(save(tmp_path / "gt.json", content), f"{NAMES[table]} row 2", says)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        *(("images", key) for key in ("id", "height", "width")),
        *(("annotations", key) for key in ("id", "image_id", "category_id", "bbox", "area")),
        ("categories", "id"),
        ("images", "neg_category_ids"),
        ("images", "not_exhaustive_category_ids"),
    ],
)
def test_a_missing_key(table: str, key: str, tmp_path: Path) -> None:
    content = lvis()
    del content[table][1][key]
    refused_truth(save(tmp_path / "gt.json", content), f"{NAMES[table]} row 1", f"{key} is missing")


@pytest.mark.parametrize("table", ["images", "annotations", "categories"])
def test_an_id_twice(table: str, tmp_path: Path) -> None:
    content = lvis()
    content[table].append(dict(content[table][0]))
    number = content[table][0]["id"]
    says = f"{NAMES[table]} id {number} occurs more than once"
    refused_truth(save(tmp_path / "gt.json", content), f"{NAMES[table]} row 3", says)


def test_masks_are_not_looked_at_when_not_wanted(tmp_path: Path) -> None:
    content = changed("annotations", 0, segmentation={"size": [1, 1], "counts": "?"})
    gt = lvdet.read_ground_truth(save(tmp_path / "gt.json", content), masks=False)
    assert gt.masks is None


# No file


def test_no_such_file(tmp_path: Path) -> None:
    refused_truth(tmp_path / "nowhere.json", "No such file")


def test_a_folder(tmp_path: Path) -> None:
    refused_truth(tmp_path, "Is a directory")
