"""Floors of classes are scores that their best detections have, whatever the shards."""

from __future__ import annotations

from functools import reduce

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lvdet import PerClass, PerImage
from lvdet.cluster.class_floors import ClassFloors
from lvdet.limits.needs import Need
from lvdet.tables.results import Ranking

CLASSES = 3
EVERY = np.arange(CLASSES)


def ranking(category: list[int], score: list[float]) -> Ranking:
    ids = np.arange(CLASSES + 1)  # the last is not among the annotations
    return Ranking(
        np.zeros(len(score), dtype=np.int32),
        np.array(category, dtype=np.int32),
        np.array(score, dtype=np.float64),
        np.zeros(1, dtype=np.int64),
        ids,
    )


rows = st.lists(st.tuples(st.integers(0, CLASSES), st.integers(0, 8)), max_size=60)


@given(shards=st.lists(rows, min_size=1, max_size=5), limit=st.integers(1, 100))
def test_no_row_below_a_floor_is_among_the_best(
    shards: list[list[tuple[int, int]]], limit: int
) -> None:
    start = ClassFloors.unknown([Need(PerClass(limit), EVERY)], CLASSES)
    assert start is not None
    known = [start.of(ranking([c for c, _ in one], [s for _, s in one])) for one in shards]
    merged = reduce(ClassFloors.raised, known, start)
    for row in range(CLASSES):
        scores = sorted((s for one in shards for c, s in one if c == row), reverse=True)
        last = scores[limit - 1] if len(scores) >= limit else -np.inf
        assert merged.floor[row] <= last
        for count, score in zip(merged.counts, merged.scores[row], strict=True):
            assert sum(s >= score for s in scores) >= count or score == -np.inf
        if limit <= 64 or len(shards) == 1:  # a step for every row of a class: exact
            assert merged.floor[row] == last


def test_only_class_limits_have_floors() -> None:
    assert ClassFloors.unknown([Need(None, EVERY)], CLASSES) is None
    assert ClassFloors.unknown([Need(PerImage(3), EVERY), Need(PerClass(0), EVERY)], 3) is None
    floors = ClassFloors.unknown([Need(PerClass(3), EVERY), Need(PerClass(7), EVERY)], CLASSES)
    assert floors is not None
    assert floors.counts.tolist() == [1, 2, 3, 4, 5, 6, 7]
