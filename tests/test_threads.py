"""The one setting of the number of threads."""

from __future__ import annotations

import os
from typing import Any

import pytest

import lvdet
from lvdet.threads import thread_count
from thread_setting import threads


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (0, "0 threads, expected 1 to 1,024"),
        (-1, "-1 threads"),
        (1025, "1025 threads"),
        (10**6, "1000000 threads"),
        (2.0, "threads is 2.0, expected a whole number"),
        (True, "threads is True"),
        ("2", "threads is '2'"),
    ],
)
def test_numbers_that_cannot_be(count: Any, says: str) -> None:
    with threads(3):
        with pytest.raises(lvdet.InputError, match=says):
            lvdet.set_threads(count)
        assert thread_count() == 3


def test_the_setting_comes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LVDET_THREADS", "5")
    assert thread_count() == 5
    with threads(3):
        assert thread_count() == 3
    assert thread_count() == 5
    monkeypatch.setenv("LVDET_THREADS", "")
    assert thread_count() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("text", ["many", "1.5", "0", "1025"])
def test_an_environment_that_makes_no_sense(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LVDET_THREADS", text)
    with pytest.raises(lvdet.InputError, match=f"{text}.* threads"):
        thread_count()
