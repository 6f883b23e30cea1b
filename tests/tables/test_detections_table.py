"""`Detections`: made from arrays, and indexed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from lvdet.tables.detections import encode_ids

GOOD: dict[str, Any] = {
    "image_id": [9, 4, 9, -1],
    "category_id": [1, 2, 1, 1],
    "score": [0.5, 0.25, 0.75, 1.0],
    "box": np.arange(16.0).reshape(4, 4),
}


def table(masks: bool = False) -> lvdet.Detections:
    rle = [{"size": [2, 2], "counts": [k, 4 - k]} for k in range(4)]
    columns = {name: value for name, value in GOOD.items() if name != "box"}
    columns["bbox"] = GOOD["box"]
    return lvdet.read_detections(columns | ({"segmentation": rle} if masks else {}))


def test_columns() -> None:
    dt = lvdet.Detections.from_arrays(**GOOD, source="mine")
    assert (len(dt), dt.source, dt.masks, dt.boxes_given) == (4, "mine", None, True)
    assert dt.image_ids.tolist() == [9, 4, -1]
    assert dt.image.tolist() == [0, 1, 0, 2]
    assert dt.category_ids.tolist() == [1, 2]
    assert dt.category.tolist() == [0, 1, 0, 0]
    assert dt.score.tolist() == GOOD["score"]
    assert dt.box.tolist() == GOOD["box"].tolist()
    types = [getattr(dt, name).dtype for name in ("image", "category", "score", "box")]
    assert types == [np.int32, np.int32, np.float64, np.float64]


def test_boxes_from_masks() -> None:
    masks = table(masks=True).masks
    columns = {name: value for name, value in GOOD.items() if name != "box"}
    dt = lvdet.Detections.from_arrays(**columns, masks=masks)
    assert not dt.boxes_given
    # Object pixels, column by column: all four; the last three; the right column; the last.
    assert dt.box.tolist() == [[0, 0, 2, 2], [0, 0, 2, 2], [1, 0, 1, 2], [1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"image_id": [1, 2, 3]}, "columns differ in length: {'image_id': 3, 'category_id': 4"),
        ({"category_id": []}, "columns differ in length"),
        ({"score": [0.5] * 5}, "columns differ in length"),
        ({"box": np.zeros((3, 4))}, "columns differ in length"),
        ({"box": []}, "columns differ in length"),
        ({"box": np.zeros((4, 5))}, r"box has shape \(4, 5\), expected \(N, 4\)"),
        ({"box": np.zeros(16)}, r"box has shape \(16,\), expected \(N, 4\)"),
        ({"box": np.zeros((2, 2, 4))}, r"box has shape \(2, 2, 4\), expected \(N, 4\)"),
        ({"box": None}, "detections need boxes or masks"),
        ({"image_id": [1, 2, 2.5, 3]}, r"row 2: image_id is 2\.5, expected a 64-bit integer"),
        ({"category_id": [1, np.nan, 2, 3]}, "row 1: category_id is nan, expected a 64-bit"),
        ({"category_id": [1, 2, 3, np.inf]}, "row 3: category_id is inf, expected a 64-bit"),
        ({"image_id": ["a", "b", "c", "d"]}, "image_id is a 1-dimensional array of <U1"),
        ({"image_id": [True] * 4}, "image_id is a 1-dimensional array of bool"),
        ({"image_id": [None] * 4}, "image_id is a 1-dimensional array of object"),
        ({"image_id": np.zeros((4, 1), dtype=int)}, "image_id is a 2-dimensional array"),
        ({"image_id": 5}, "image_id is a 0-dimensional array"),
    ],
)
def test_arrays_that_do_not_fit(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(lvdet.InputError, match=f"mine.*{says}") as caught:
        lvdet.Detections.from_arrays(**(GOOD | changes), source="mine")
    assert len(str(caught.value).splitlines()) == 1


def test_masks_of_another_length() -> None:
    masks = table(masks=True).masks
    assert masks is not None
    with pytest.raises(lvdet.InputError, match=r"columns differ in length.*'masks': 2"):
        lvdet.Detections.from_arrays(**GOOD, masks=masks[:2])


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize(
    "rows",
    [
        np.array([2, 0, 0]),
        np.array([-1]),
        np.array([], dtype=np.int64),
        np.array([True, False, False, True]),
        slice(1, 3),
        slice(None, None, -1),
        [3, 1],
    ],
    ids=range(7),
)
def test_indexing_gives_a_new_table(rows: Any, masks: bool) -> None:
    dt = table(masks)
    before = dt.score.copy(), dt.box.copy()
    part = dt[rows]
    kept = np.arange(4)[rows].tolist()
    assert part is not dt
    assert len(part) == len(kept)
    assert part.image_ids[part.image].tolist() == [GOOD["image_id"][row] for row in kept]
    assert part.category_ids[part.category].tolist() == [GOOD["category_id"][row] for row in kept]
    assert part.score.tolist() == [GOOD["score"][row] for row in kept]
    assert part.box.tolist() == GOOD["box"][kept].tolist()
    assert (part.source, part.boxes_given) == (dt.source, dt.boxes_given)
    if masks:
        assert part.masks is not None
        assert dt.masks is not None
        assert [part.masks.row(k) for k in range(len(part))] == [dt.masks.row(k) for k in kept]
    assert np.array_equal(dt.score, before[0])
    assert np.array_equal(dt.box, before[1])


def test_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        table().score = np.zeros(4)  # type: ignore[misc]


def test_other_scores() -> None:
    dt = table(masks=True)
    new = dt.with_scores(np.array([4, 3, 2, 1], dtype=np.float32))
    assert new.score.tolist() == [4, 3, 2, 1]
    assert new.score.dtype == np.float64
    assert dt.score.tolist() == GOOD["score"]
    assert new.masks is dt.masks
    with pytest.raises(lvdet.InputError, match="3 scores for 4 detections"):
        dt.with_scores(np.zeros(3))


ids = st.one_of(st.integers(-3, 3), st.integers(16_380, 16_390), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(ids, max_size=60))
def test_ids_by_first_appearance(values: list[int]) -> None:
    distinct, rows = encode_ids(np.array(values, dtype=np.int64), "image_id", "mine")
    assert distinct.tolist() == list(dict.fromkeys(values))
    assert distinct[rows].tolist() == values
    assert (distinct.dtype, rows.dtype) == (np.int64, np.int32)


@given(st.lists(st.integers(-(2**53), 2**53), max_size=30))
def test_ids_as_floats(values: list[int]) -> None:
    distinct, rows = encode_ids(np.array(values, dtype=np.float64), "image_id", "mine")
    assert distinct[rows].tolist() == values


@pytest.mark.parametrize(
    "values", [np.array([2**63], dtype=np.uint64), np.array([1e19]), np.array([-1e300])]
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
def test_ids_beyond_int64(values: Any) -> None:
    with pytest.raises(lvdet.InputError, match="image_id"):
        encode_ids(values, "image_id", "mine")
