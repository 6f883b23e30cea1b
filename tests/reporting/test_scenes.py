"""Numbers in pictures do not overlap."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from lvdet.reporting.scenes import Mark, marks, number_box, text_size
from lvdet.studies.account import Shown

WIDTH, HEIGHT = 640, 480


def detections(boxes: list[tuple[float, ...]]) -> list[Shown]:
    return [Shown(1, "cup", 0.5, box, "right", row) for row, box in enumerate(boxes)]


def text_box(mark: Mark) -> tuple[float, float, float, float]:
    wide, high = number_box(mark.rank, text_size(WIDTH, HEIGHT))
    return mark.x, mark.y, mark.x + wide, mark.y + high


@pytest.mark.parametrize("side", [20, 100, 600])
def test_numbers_that_are_seen_do_not_overlap(side: int) -> None:
    rng = np.random.default_rng(side)
    boxes = [(*rng.uniform(0, 300, 2), *rng.uniform(1, side, 2)) for _ in range(40)]
    found = marks(detections(boxes), {}, WIDTH, HEIGHT)
    assert [mark.rank for mark in found] == list(range(1, 41))
    assert not found[0].crowded
    for mark in found:
        left, top, right, bottom = text_box(mark)
        assert 0 <= left < right <= WIDTH + 1e-9
        assert 0 <= top < bottom <= HEIGHT + 1e-9
    seen = [text_box(mark) for mark in found if not mark.crowded]
    assert len(seen) > 20
    for a, b in combinations(seen, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


def test_numbers_give_way_where_there_is_no_room() -> None:
    found = marks(detections([(100, 100, 8, 8)] * 30), {}, WIDTH, HEIGHT)
    assert not found[0].crowded
    assert found[-1].crowded


def test_a_number_is_at_the_corner_of_its_box_or_at_the_top_of_its_mask() -> None:
    items = detections([(100, 50, 200, 80), (400, 300, 100, 90)])
    box, mask = marks(items, {1: "M0 0Z"}, WIDTH, HEIGHT)
    assert (box.x, box.y) == (100, 50)
    wide, _ = number_box(2, text_size(WIDTH, HEIGHT))
    assert (mask.x + wide / 2, mask.y) == (pytest.approx(450), 300)
    assert (box.outline, mask.outline) == ("", "M0 0Z")


def test_a_box_outside_the_picture_keeps_its_number_inside() -> None:
    (mark,) = marks(detections([(-50, 470, 20, 60)]), {}, WIDTH, HEIGHT)
    left, top, _, bottom = text_box(mark)
    assert left == 0
    assert top >= 0
    assert bottom <= HEIGHT + 1e-9


def test_a_box_beyond_the_right_edge_keeps_its_number_inside() -> None:
    (mark,) = marks(detections([(700, -90, 20, 60)]), {}, WIDTH, HEIGHT)
    _, top, right, _ = text_box(mark)
    assert (top, right) == (0, WIDTH)
