"""`rows_of` is a dict from id to row, whichever way it looks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lvdet.tables.problems import rows_of

any_id = st.integers(-(2**63), 2**63 - 1)
near = st.integers(-5, 40)
edge = st.sampled_from([(1 << 22) - 1, 1 << 22, (1 << 22) + 1, (1 << 22) - 2])
some_ids = st.one_of(near, edge, any_id)


def expected(ids: list[int], wanted: list[int]) -> list[int]:
    rows = {value: row for row, value in enumerate(ids)}
    return [rows.get(value, -1) for value in wanted]


@given(st.sets(some_ids, max_size=20), st.lists(some_ids, max_size=60))
def test_any_ids(known: set[int], wanted: list[int]) -> None:
    ids = sorted(known)
    wanted += ids[::-1] + ids[:3]
    rows = rows_of(np.array(ids, dtype=np.int64), np.array(wanted, dtype=np.int64))
    assert rows.tolist() == expected(ids, wanted)
    assert rows.dtype == np.int32


@given(st.sets(st.integers(0, 50), min_size=1, max_size=20), st.data())
def test_many_wanted_of_few_small_ids(known: set[int], data: st.DataObject) -> None:
    """More wanted than ids, all of them small: the way by a table."""
    ids = sorted(known)
    wanted = data.draw(st.lists(some_ids, min_size=len(ids) + 1, max_size=80))
    rows = rows_of(np.array(ids, dtype=np.int64), np.array(wanted, dtype=np.int64))
    assert rows.tolist() == expected(ids, wanted)


@pytest.mark.parametrize("count", [1, 2, 100])
@pytest.mark.parametrize("last", [(1 << 22) - 1, 1 << 22])
def test_where_the_table_becomes_too_long(count: int, last: int) -> None:
    ids = [0, 7, last]
    wanted = [last + 1, last, last - 1, 7, 8, -1, 0, 2**62, -(2**62)] * count
    rows = rows_of(np.array(ids), np.array(wanted))
    assert rows.tolist() == expected(ids, wanted)


@pytest.mark.parametrize("wanted", [[], [1, 2]])
def test_no_ids(wanted: list[int]) -> None:
    rows = rows_of(np.zeros(0, dtype=np.int64), np.array(wanted, dtype=np.int64))
    assert rows.tolist() == [-1] * len(wanted)


def test_the_arrays_stay_as_they_are() -> None:
    ids, wanted = np.array([1, 5]), np.array([5, 0, 1, 1, 9])
    assert rows_of(ids, wanted).tolist() == [1, -1, 0, 0, -1]
    assert ids.tolist() == [1, 5]
    assert wanted.tolist() == [5, 0, 1, 1, 9]
