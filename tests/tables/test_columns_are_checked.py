"""The native code reads columns as they are, so tables refuse those that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lvdet
from lvdet.errors import InputError
from lvdet.tables.ground_truth import GroundTruth


def pair() -> tuple[GroundTruth, lvdet.Detections]:
    return lvdet.simulate(images=6, classes=4, seed=3, masks=True)


CHANGES: dict[str, Callable[[GroundTruth, lvdet.Detections], Any]] = {
    "score is float32 with shape": lambda gt, dt: replace(dt, score=dt.score.astype(np.float32)),
    "score is list, expected float64": lambda gt, dt: replace(dt, score=dt.score.tolist()),
    "box is float64 with shape": lambda gt, dt: replace(dt, box=dt.box[:, :3]),
    "image holds 0 to 99, expected rows 0 to": lambda gt, dt: replace(
        dt, image=np.where(np.arange(len(dt)) == 0, 99, 0).astype(np.int32)
    ),
    "category holds -1 to": lambda gt, dt: replace(
        dt, category=np.where(np.arange(len(dt)) == 0, -1, 0).astype(np.int32)
    ),
    r"\d+ masks for \d+ detections": lambda gt, dt: replace(dt, masks=gt.masks),
    r"\d+ masks for \d+ annotations": lambda gt, dt: replace(gt, masks=dt.masks),
    "rows are 3, expected an index array": lambda gt, dt: dt[3],
    "images: ids must be strictly increasing": lambda gt, dt: replace(
        gt.images, ids=gt.images.ids[::-1].copy()
    ),
    "categories: 4 ids, 1 names, 4 frequencies": lambda gt, dt: replace(
        gt.categories, names=("one",)
    ),
    "categories: ids must be strictly increasing": lambda gt, dt: replace(
        gt.categories, ids=np.zeros(4, np.int64)
    ),
}


@pytest.mark.parametrize("says", CHANGES)
def test_a_column_that_does_not_fit(says: str) -> None:
    gt, dt = pair()
    with pytest.raises(InputError, match=says) as error:
        CHANGES[says](gt, dt)
    assert "\n" not in str(error.value)


def test_columns_become_contiguous() -> None:
    _, dt = pair()
    every_other = np.repeat(dt.score, 2)[::2]
    assert not every_other.flags.c_contiguous
    made = replace(dt, score=every_other)
    assert made.score.flags.c_contiguous
    np.testing.assert_array_equal(made.score, dt.score)
