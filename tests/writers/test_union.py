"""The best of each image and of each class in one file, from which every budget gets its own."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from lvdet.files.records import from_records
from lvdet.limits.budgets import Budget, PerClass, PerImage, apply
from writers.added_images import add_all, best, columns, random_images, records_of
from writers.test_top_k_writer import small_journal

BUDGETS = [(4, 3), (4, 0), (0, 3), (1, 1), (2, 30), (30, 2)]
BOX = [[0.0, 0.0, 1.0, 1.0]]


def survivors(source: Path | lvdet.Detections, budgets: list[Budget]) -> list[dict[str, object]]:
    """The records that the budgets leave, as `evaluate` applies them."""
    dt = lvdet.read_detections(source)
    keep = apply(budgets, dt)
    return records_of(dt if keep is None else dt[keep])


@settings(max_examples=30)
@given(
    st.integers(0, 1 << 32),
    st.sampled_from(BUDGETS),
    st.sampled_from([0, 5, 1 << 20]),
    st.sampled_from([1, 400, 1 << 20]),
    st.lists(st.integers(0, 20), max_size=2),
)
def test_each_budget_finds_its_own(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    limits: tuple[int, int],
    compact_rows: int,
    file_bytes: int,
    restarts: list[int],
) -> None:
    """Masks over the file select what masks over all detections select: also smaller limits, and a
    limit after another."""
    target = tmp_path_factory.mktemp("union") / "out.jsonl"
    per_class, per_image = limits
    named = {"dets_per_class": per_class, "dets_per_image": per_image}
    images = random_images(20, seed, classes=3, scores=6)
    everything = [record for _, records in images for record in records]
    with small_journal(compact_rows, file_bytes):
        sink = lvdet.TopKWriter(target, **named)
        for number, (image_id, records) in enumerate(images):
            if number in restarts:
                sink.__exit__(KeyError, None, None)
                sink = lvdet.TopKWriter(target, **named)
            boxes, scores, labels = columns(records)
            wanted = best(images[: number + 1], per_class, per_image)
            keeps = sink.keeps(scores, labels).tolist()
            assert all(kept for kept, row in zip(keeps, records, strict=True) if row in wanted)
            sink.add(
                image_id,
                *(
                    [value for value, kept in zip(column, keeps, strict=True) if kept]
                    for column in (boxes, scores, labels)
                ),
            )
        sink.close()
    assert records_of(target) == best(images, per_class, per_image)
    if not everything:
        return
    whole = from_records(everything)
    for budgets in (
        *([PerClass(limit)] for limit in range(1, per_class + 1)),
        *([PerImage(limit)] for limit in range(1, per_image + 1)),
        *([PerImage(per_image), PerClass(2)] for _ in range(per_image > 0)),
        *([PerClass(per_class), PerImage(2)] for _ in range(per_class > 0)),
    ):
        assert survivors(target, list(budgets)) == survivors(whole, list(budgets)), budgets


def test_class_thresholds(tmp_path: Path) -> None:
    images = random_images(30, 3)
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=6, dets_per_image=2) as sink:
        assert np.array_equal(sink.class_thresholds([7, 0]), [-math.inf] * 2)
        for image_id, records in images:
            sink.add(image_id, *columns(records))
            found = sink.class_thresholds(np.arange(30))
            assert found.dtype == np.float64
            assert {n: t for n, t in enumerate(found.tolist()) if t > -math.inf} == sink.thresholds
        assert len(sink.thresholds) == 4
        with pytest.raises(lvdet.InputError, match="class_thresholds"):
            sink.class_thresholds(["cat"])


def test_no_budget_per_class(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    with lvdet.TopKWriter(target, dets_per_class=0, dets_per_image=2) as sink:
        assert sink.keeps([0.5, 0.25, 0.5, 0.5], [1, 2, 3, 4]).tolist() == [
            True,
            False,
            True,
            False,
        ]
        sink.add(1, BOX * 4, [0.5, 0.25, 0.5, 0.5], [1, 2, 3, 4])
        assert (sink.threshold(1), dict(sink.thresholds)) == (math.inf, {})
        assert sink.class_thresholds([1, 9]).tolist() == [math.inf] * 2
        assert sink.rows == 2
    assert [row["category_id"] for row in records_of(target)] == [1, 3]


def test_the_budget_per_image_is_a_setting(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    sink = lvdet.TopKWriter(target, dets_per_image=3)
    add_all(sink, random_images(3, 0))
    sink.__exit__(KeyError, None, None)
    with pytest.raises(lvdet.InputError, match="started with dets_per_image 3, now 0"):
        lvdet.TopKWriter(target)
