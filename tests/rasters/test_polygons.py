"""Filled polygons against counted crossings, pixel by pixel, and against pycocotools."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco

from lvdet.rasters import polygons

# pycocotools' own, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def counted(parts, height, width):
    """A centre is inside where an odd number of edges is on its left."""
    union = np.zeros((height, width), dtype=bool)
    y, x = np.mgrid[:height, :width] + 0.5
    for part in parts:
        points = np.reshape(part, (-1, 2))
        if len(points) < 3:
            continue
        crossed = np.zeros((height, width), dtype=int)
        for (xa, ya), (xb, yb) in zip(points, np.roll(points, -1, axis=0), strict=True):
            if ya != yb:
                at = xa + (y - ya) * ((xb - xa) / (yb - ya))
                crossed += ((ya <= y) != (yb <= y)) & (at <= x)
        union |= crossed % 2 == 1
    return union


halves = st.integers(-6, 40).map(lambda n: n / 2)  # many centres and corners just on edges
numbers = st.one_of(halves, st.floats(-5, 25, width=32))
polygon = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=9).map(
    lambda points: [float(n) for point in points for n in point]
)


@settings(deadline=None, max_examples=300)
@given(st.lists(polygon, max_size=3), st.integers(1, 18), st.integers(1, 18))
def test_pixels_are_those_with_an_odd_number_of_crossings(parts, height, width):
    filled = polygons.fill(parts, height, width)
    expected = counted(parts, height, width)
    # where an edge goes through a centre but for rounding either answer is right
    y, x = np.nonzero(filled != expected)
    assert all(_distance(parts, i + 0.5, j + 0.5) < 1e-9 for i, j in zip(x, y, strict=True))


def _distance(parts, x, y):
    """To the nearest crossing of an edge with the point's row."""
    nearest = np.inf
    for part in parts:
        points = np.reshape(part, (-1, 2))
        for (xa, ya), (xb, yb) in zip(points, np.roll(points, -1, axis=0), strict=True):
            if (ya <= y) != (yb <= y):
                nearest = min(nearest, abs(xa + (y - ya) * (xb - xa) / (yb - ya) - x))
    return nearest


def test_hand_written():
    square = [1, 1, 4, 1, 4, 3, 1, 3]
    expected = np.zeros((5, 6), dtype=bool)
    expected[1:3, 1:4] = True
    np.testing.assert_array_equal(polygons.fill([square], 5, 6), expected)
    # from centre to centre: left and top edges belong to it, right and bottom ones do not
    np.testing.assert_array_equal(
        polygons.fill([[1.5, 1.5, 4.5, 1.5, 4.5, 3.5, 1.5, 3.5]], 5, 6), expected
    )
    # overlapping parts are united, one that covers itself twice has a hole
    np.testing.assert_array_equal(polygons.fill([square, square], 5, 6), expected)
    assert not polygons.fill([square + square], 5, 6).any()
    assert polygons.fill([[-9, -9, 99, -9, 99, 99, -9, 99]], 5, 6).all()
    assert not polygons.fill([[7, 0, 9, 0, 9, 5, 7, 5]], 5, 6).any()
    assert not polygons.fill([], 5, 6).any()


@pytest.mark.parametrize("seed", range(8))
def test_much_the_same_as_pycocotools(seed):
    """Its pixels reach about half a pixel further: large objects have nearly the same."""
    random = np.random.default_rng(seed)
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    radius = random.uniform(60, 200) * (1 + 0.3 * np.sin(3 * angle + random.uniform(0, 6)))
    points = np.stack([320 + radius * np.cos(angle), 240 + radius * np.sin(angle)], axis=1)
    part = points.clip(0, [640, 480]).ravel().round(2).tolist()
    filled = polygons.fill([part], 480, 640)
    theirs = coco.decode(coco.frPyObjects([part], 480, 640)[0]).astype(bool)
    assert (filled & theirs).sum() / (filled | theirs).sum() > 0.97
    assert filled.sum() > 5000
