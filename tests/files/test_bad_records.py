"""Unusable detections given in Python: an InputError of one line, nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lvdet
from files.broken_masks import SEGMENTATIONS
from files.record_files import ROWS, Json, one_line

GOOD: Json = {
    "image_id": [1, 2],
    "category_id": [3, 4],
    "score": [0.5, 0.25],
    "bbox": [[1, 2, 3, 4], [5, 6, 7, 8]],
}


def refused_object(source: Any, *says: str) -> None:
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.read_detections(source)
    text = one_line(caught.value)
    for words in says:
        assert words in text


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        *((key, None, f"{key} is missing") for key in ("image_id", "category_id", "score")),
        *((key, "1", f"{key} is '1', expected a number") for key in ("category_id", "score")),
        ("image_id", "a", 'image_id "a" is not a number'),
        *((key, True, f"{key} is True, expected a number") for key in ("category_id", "score")),
        *((key, [1], f"{key} is [1], expected a number") for key in ("image_id", "score")),
        ("score", float("nan"), "score is nan"),
        ("score", np.inf, "score is inf"),
        ("bbox", [1, 2, 3], "bbox has 3 numbers"),
        ("bbox", [1, 2, 3, 4, 5], "bbox has 5 numbers"),
        ("bbox", np.zeros(3), "bbox has 3 numbers"),
        ("bbox", [1, None, 3, 4], "bbox is [1, nan, 3, 4]"),
        ("bbox", [1, 2, np.inf, 4], "bbox is [1, 2, inf, 4]"),
        ("bbox", [1, 2, -3, 4], "expected a non-negative width and height"),
        ("bbox", None, "has neither bbox nor segmentation"),
        ("bbox", 5, "bbox"),
        ("bbox", ["a", 2, 3, 4], "bbox"),
        ("bbox", "1234", "bbox"),
        ("bbox", [[1], 2, 3, 4], "bbox"),
        ("score", 10**400, "score"),
        ("score", np.complex128(1), "score"),
    ],
)
def test_a_record(key: str, value: Any, says: str) -> None:
    refused_object([ROWS[0], ROWS[1] | {key: value}], "detections, row 1", says)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("image_id", 1.5),
        ("category_id", float("nan")),
        ("image_id", 10**30),
        ("image_id", 2**63),
        ("image_id", np.uint64(2**63 + 5)),
        ("category_id", 1e30),
        ("category_id", -1e19),
    ],
)
def test_an_id_that_is_no_id(key: str, value: Any) -> None:
    refused_object([ROWS[0] | {key: value}], key)


@pytest.mark.parametrize("key", ["image_id", "category_id", "score"])
def test_a_missing_key(key: str) -> None:
    record = {name: value for name, value in ROWS[1].items() if name != key}
    refused_object([ROWS[0], record], "detections, row 1", f"{key} is missing")


@pytest.mark.parametrize("item", [5, None, "a", [1, 2], b"{}"])
def test_a_record_that_is_no_dict(item: Any) -> None:
    refused_object([ROWS[0], item], "row 1", f"is a {type(item).__name__}, expected a dict")


@pytest.mark.parametrize("segmentation", [value for value, _ in SEGMENTATIONS])
@pytest.mark.parametrize("box", [True, False])
def test_a_mask_that_cannot_be(segmentation: Any, box: bool) -> None:
    """The same as in files."""
    record = ROWS[1] | {"segmentation": segmentation}
    if not box:
        del record["bbox"]
    refused_object([ROWS[0], record], "detections, row 1")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image_id": None}, "image_id"),
        ({"image_id": [1]}, "columns differ in length"),
        ({"score": [0.5]}, "columns differ in length"),
        ({"score": [0.5, 0.25, 0.125]}, "columns differ in length"),
        ({"bbox": [[1, 2, 3, 4]]}, "columns differ in length"),
        ({"bbox": [[1, 2, 3], [4, 5, 6]]}, "box has shape (2, 3), expected (N, 4)"),
        ({"bbox": [1, 2, 3, 4]}, "box has shape (4,), expected (N, 4)"),
        ({"bbox": np.zeros((2, 4, 1))}, "box has shape (2, 4, 1), expected (N, 4)"),
        ({"image_id": [1.5, 2]}, "row 0: image_id is 1.5, expected a 64-bit integer"),
        ({"category_id": [1, np.inf]}, "row 1: category_id is inf, expected a 64-bit integer"),
        ({"category_id": ["1", "2"]}, "category_id is a 1-dimensional array of"),
        ({"image_id": [[1], [2]]}, "image_id is a 2-dimensional array of"),
        ({"image_id": [True, False]}, "image_id is a 1-dimensional array of bool"),
        ({"score": [0.5, np.nan]}, "row 1: score is nan"),
        ({"bbox": [[1, 2, 3, 4], [1, 2, -1, 4]]}, "row 1: bbox is [1, 2, -1, 4]"),
        ({"segmentation": [None]}, "columns differ in length"),
        ({"segmentation": [None, {"size": [2, 2], "counts": [3]}]}, "row 1: RLE runs do not"),
        ({"score": ["a", "b"]}, "score"),
        ({"score": 0.5}, "columns differ in length"),
        ({"score": [[0.5], [0.25]]}, "score"),
        ({"bbox": [[1, 2, 3, 4], [1, 2, 3]]}, "bbox"),
        ({"bbox": [["a"] * 4] * 2}, "bbox"),
        ({"image_id": [[1], [1, 2]]}, "image_id"),
        ({"segmentation": 5}, "segmentation"),
    ],
)
def test_arrays(changes: Json, says: str) -> None:
    refused_object(GOOD | changes, says)


@pytest.mark.parametrize("key", ["image_id", "category_id", "score"])
def test_a_missing_array(key: str) -> None:
    arrays = {name: value for name, value in GOOD.items() if name != key}
    refused_object(arrays, f"no '{key}' array, found")


def test_arrays_without_a_place() -> None:
    arrays = {name: value for name, value in GOOD.items() if name != "bbox"}
    refused_object(arrays, "detections need boxes or masks")
