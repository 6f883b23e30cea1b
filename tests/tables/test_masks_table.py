"""`Masks` behaves as a list of encoded rows."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet

Row = tuple[bytes, int, int, int]
rows_of_bytes = st.lists(
    st.tuples(st.binary(max_size=6), st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)),
    max_size=12,
)


def masks_of(rows: list[Row]) -> lvdet.Masks:
    ends = np.cumsum([0] + [len(content) for content, *_ in rows])
    return lvdet.Masks(
        np.frombuffer(b"".join(content for content, *_ in rows), dtype=np.uint8),
        ends.astype(np.int64),
        np.array([row[1] for row in rows], dtype=np.uint8),
        np.array([row[2] for row in rows], dtype=np.int32),
        np.array([row[3] for row in rows], dtype=np.int32),
    )


def rows_in(masks: lvdet.Masks) -> list[Row]:
    types = [column.dtype for column in masks.columns]
    assert types == [np.uint8, np.int64, np.uint8, np.int32, np.int32]
    assert masks.offsets[0] == 0
    assert masks.offsets[-1] == len(masks.data)
    return [
        (masks.row(row), int(masks.kind[row]), int(masks.height[row]), int(masks.width[row]))
        for row in range(len(masks))
    ]


@given(rows_of_bytes)
def test_rows(rows: list[Row]) -> None:
    assert rows_in(masks_of(rows)) == rows
    assert len(masks_of(rows)) == len(rows)


@given(rows_of_bytes, st.data())
def test_rows_by_index(rows: list[Row], data: st.DataObject) -> None:
    masks = masks_of(rows)
    index = data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), max_size=20)) if rows else []
    assert rows_in(masks[np.array(index, dtype=np.int64)]) == [rows[at] for at in index]
    chosen = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    kept = [row for row, keep in zip(rows, chosen, strict=True) if keep]
    assert rows_in(masks[np.array(chosen, dtype=bool)]) == kept
    part = data.draw(st.slices(len(rows))) if rows else slice(None)
    assert rows_in(masks[part]) == rows[part]
    assert rows_in(masks) == rows


@given(st.lists(rows_of_bytes, min_size=1, max_size=5))
def test_joined(parts: list[list[Row]]) -> None:
    joined = lvdet.Masks.concatenate([masks_of(rows) for rows in parts])
    assert rows_in(joined) == [row for rows in parts for row in rows]


@pytest.mark.parametrize("rows", [np.array([3]), np.array([True, False]), np.array([0.5])])
def test_rows_that_are_not_there(rows: Any) -> None:
    with pytest.raises(IndexError):
        masks_of([(b"a", 1, 1, 1)] * 3)[rows]


def test_frozen() -> None:
    masks = masks_of([(b"a", 1, 1, 1)])
    with pytest.raises(FrozenInstanceError):
        masks.kind = masks.kind  # type: ignore[misc]
