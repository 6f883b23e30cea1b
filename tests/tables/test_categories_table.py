"""`Categories`: rows by id, by name and by frequency."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lvdet
from lvdet.tables.categories import resolve_groups


def classes(frequency: str = "rfcr ", names: tuple[str, ...] = ()) -> lvdet.Categories:
    """Ids 2, 3, 5, 7, 11 with the frequencies given, a space for none."""
    return lvdet.Categories(
        np.array([2, 3, 5, 7, 11]),
        names or ("cat", "12", "7", "hot dog", "rc x"),
        np.array([letter.strip() for letter in frequency], dtype=np.str_),
    )


def test_groups() -> None:
    groups = {name: rows.tolist() for name, rows in classes().groups().items()}
    assert groups == {"r": [0, 3], "c": [2], "f": [1]}
    assert classes("rrrrr").groups()["c"].tolist() == []


def test_no_groups_without_frequencies() -> None:
    assert classes("     ").groups() == {}


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        ([], []),
        ([11, 2], [0, 4]),
        (["hot dog", "cat", "cat", 2], [0, 3]),
        (["5"], [2]),
        ([" 11 "], [4]),
        (["7"], [2]),  # a name before an id
        ([7], [3]),
        ([np.int64(3)], [1]),
        (np.array([3, 5]), [1, 2]),
        (iter(["cat"]), [0]),
    ],
)
def test_select(wanted: Any, rows: list[int]) -> None:
    chosen = classes().select(wanted)
    assert chosen.tolist() == rows
    assert chosen.dtype == np.int64


@pytest.mark.parametrize(
    "wanted", ["dog", "Cat", "", "999", "-2", 999, -2, 2**70, "2.0", "hot", "hot dog,cat"]
)
def test_select_of_an_unknown_class(wanted: Any) -> None:
    with pytest.raises(lvdet.InputError, match="no class") as caught:
        classes().select(["cat", wanted])
    assert repr(wanted) in str(caught.value)


@pytest.mark.parametrize("wanted", ["--5", "²", "-²"])
def test_select_of_what_looks_like_a_number(wanted: str) -> None:
    with pytest.raises(lvdet.InputError, match="no class"):
        classes().select([wanted])


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("r", [0, 3]),
        ("c", [2]),
        ("rc", [0, 2, 3]),
        ("cr", [0, 2, 3]),
        ("rcf", [0, 1, 2, 3]),
        ("ff", [1]),
        ("cat", [0]),
        ("cat,hot dog", [0, 3]),
        (" hot dog , 2 ,", [0, 3]),
        ("2,3", [0, 1]),
        ("rc x", [4]),
        ("11", [4]),
    ],
)
def test_subset(text: str, rows: list[int]) -> None:
    assert classes().subset(text).tolist() == rows


def test_subset_prefers_a_name_to_letters() -> None:
    named = classes(names=("f", "rc", "a", "b", "c c"))
    assert named.subset("rc").tolist() == [1]
    assert named.subset("f").tolist() == [0]
    assert named.subset("r").tolist() == [0, 3]


@pytest.mark.parametrize("text", ["x", "rcx", "cat,dog", "12,13", "r,c"])
def test_subset_of_an_unknown_class(text: str) -> None:
    with pytest.raises(lvdet.InputError, match="no class named"):
        classes().subset(text)


def test_subset_by_frequency_without_frequencies() -> None:
    with pytest.raises(lvdet.InputError, match="have no 'frequency'"):
        classes("     ").subset("rc")


@pytest.mark.parametrize("text", ["", ",", " , "])
def test_subset_of_nothing(text: str) -> None:
    with pytest.raises(lvdet.InputError):
        classes().subset(text)


def test_groups_of_the_caller() -> None:
    groups = resolve_groups(classes(), {"novel": ["cat", 11], "none": []})
    assert {name: rows.tolist() for name, rows in groups.items()} == {
        "r": [0, 3],
        "c": [2],
        "f": [1],
        "novel": [0, 4],
        "none": [],
    }
    assert list(resolve_groups(classes("     "), {"a": [2]})) == ["a"]
    with pytest.raises(lvdet.InputError, match="no class named 'dog'"):
        resolve_groups(classes(), {"novel": ["dog"]})
    with pytest.raises(lvdet.InputError, match="group 'r' is reserved for a frequency group"):
        resolve_groups(classes(), {"r": [3]})
