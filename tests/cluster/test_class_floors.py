"""Floors of classes are scores that their best detections have, whatever the shards."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from lvdet import PerClass, PerImage
from lvdet.cluster.class_floors import ClassFloors
from lvdet.files.collect import Cap
from lvdet.files.detection_files import NamedFiles, read_results
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


@given(
    shard=st.lists(st.tuples(st.integers(0, CLASSES - 1), st.integers(0, 8)), max_size=60),
    floor=st.lists(st.sampled_from([-np.inf, 0, 3, 5, 9]), min_size=CLASSES, max_size=CLASSES),
    limit=st.integers(1, 20),
)
def test_reading_drops_only_rows_below_the_floors(
    shard: list[tuple[int, int]],
    floor: list[float],
    limit: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """And above them, at most those that better rows of the shard itself follow or precede."""
    path = tmp_path_factory.mktemp("shard") / "dt.json"
    gt = lvdet.simulate(images=1, classes=CLASSES, dets_per_image=1)[0]
    gt = replace(gt, categories=replace(gt.categories, ids=EVERY))
    box = {"image_id": int(gt.images.ids[0]), "bbox": [0, 0, 1, 1]}
    path.write_text(json.dumps([box | {"category_id": c, "score": s} for c, s in shard]))
    cap = Cap(False, limit, EVERY.astype(np.int32), CLASSES, -1, np.array(floor))
    results = read_results(NamedFiles([path], "dt"), gt, [cap], room=0)
    ranking = results.ranking
    held = list(zip(ranking.category.tolist(), ranking.score.tolist(), strict=True))
    for row in range(CLASSES):
        scores = sorted((s for c, s in shard if c == row and s >= floor[row]), reverse=True)
        kept = sorted((s for c, s in held if c == row), reverse=True)
        assert kept[:limit] == scores[:limit]
        assert all(score >= floor[row] for score in kept)
    assert results.total == len(shard)
