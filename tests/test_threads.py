"""The one setting of the number of threads, which changes no result."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lvdet
from lvdet.calibration.fitting import METHODS
from lvdet.threads import thread_count
from thread_setting import on_threads, threads


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (0, "threads is 0, expected 1 to 1,024"),
        (-1, "threads is -1,"),
        (1025, "threads is 1025,"),
        (10**6, "threads is 1000000,"),
        (2.0, "threads is 2.0, expected an integer"),
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
    with pytest.raises(lvdet.InputError, match=f"(?i)threads is .?{text}"):
        thread_count()


# What does not depend on it: more rows than a block has, and every kind of work on them


@pytest.fixture(scope="module")
def large() -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    return lvdet.simulate(images=400, classes=150, dets_per_image=None, seed=3)


@pytest.fixture(scope="module")
def small() -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    return lvdet.simulate(images=40, classes=24, dets_per_image=60, class_bias=0.7, seed=11)


def test_the_same_table_is_read(large: tuple[Any, lvdet.Detections], tmp_path: Path) -> None:
    lvdet.write_detections(large[1], tmp_path / "large.json")
    one, *others = on_threads(lambda: lvdet.read_detections(tmp_path / "large.json"), 1, 2, 5)
    for other in others:
        for name in ("image", "category", "score", "box", "image_ids", "category_ids"):
            assert getattr(other, name).tobytes() == getattr(one, name).tobytes()


WORK: dict[str, Callable[..., Any]] = {
    "evaluate": lambda *t: lvdet.evaluate(*t, dets_per_image=50, dets_per_class=200).to_dict(),
    "diagnose": lambda *t: lvdet.diagnose(*t, dets_per_class=200).to_dict(),
    "targets": lambda *t: lvdet.diagnose(*t, dets_per_class=200).rows.target.tobytes(),
    "sweep": lambda *t: lvdet.sweep(*t, paper="all", rerank=20).to_dict(),
    "cap": lambda *t: lvdet.search_class_cap(*t).tried,
}
SMALL_WORK: dict[str, Callable[..., Any]] = {
    "compare": lambda gt, dt: lvdet.compare(gt, [dt, dt[::2]], resamples=150).to_dict(),
    **{
        method: lambda *t, method=method: lvdet.calibrate(*t, folds=2, methods=[method]).to_dict()
        for method in METHODS
    },
    "maps": lambda *t: lvdet.Calibrator().fit(*t).transform(t[1]).score.tobytes(),
}


@pytest.mark.parametrize("name", [*WORK, *SMALL_WORK])
def test_threads_change_nothing(name: str, large: Any, small: Any) -> None:
    """Not a bit, for numbers as plain values are whole."""
    work, tables = (WORK[name], large) if name in WORK else (SMALL_WORK[name], small)
    one, *others = (repr(found) for found in on_threads(lambda: work(*tables), 1, 2, 5))
    assert others == [one, one]
