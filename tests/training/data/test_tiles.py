"""Tiles against whole masks of the resized image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lvdet.rasters import polygons, run_lengths
from lvdet.training.data.batch import TILE
from lvdet.training.data.tiles import FINER, polygon_tile, run_tile


def pasted(made, height, width, finer=1):
    """The whole mask, so many times finer, of a tile whose frame is not larger than it."""
    height, width = finer * height, finer * width
    whole = np.zeros((height, width), dtype=bool)
    if made is not None:
        inside, (x0, y0, wide, high) = made[0], (finer * side for side in made[1])
        assert inside.shape == (high, wide)
        assert 0 <= x0 < x0 + wide <= width
        assert 0 <= y0 < y0 + high <= height
        whole[y0 : y0 + high, x0 : x0 + wide] = inside
    return whole


sides = st.integers(1, 60)
small = st.integers(1, TILE // FINER)


@settings(max_examples=200)
@given(
    sides, sides, small, small, st.lists(st.lists(st.integers(-80, 320), min_size=6, max_size=8))
)
def test_polygons_up_to_a_tile_are_exact(h, w, height, width, lists):
    parts = [np.reshape(p[: len(p) // 2 * 2], (-1, 2)).astype(np.float32) / 4 for p in lists]
    parts = [part for part in parts if len(part) >= 3]
    made = polygon_tile(parts, (h, w), (height, width))
    scaled = [part * np.array([width / w, height / h]) for part in parts]
    scaled = [part * FINER for part in scaled]
    high, wide = FINER * height, FINER * width
    whole = polygons.fill([part.ravel() for part in scaled], high, wide)
    differ = pasted(made, height, width, FINER) != whole
    # moving a polygon to its frame rounds: only centres on an edge may fall to the other side
    if differ.any():
        for shift in (-1e-6, 1e-6):
            moved = polygons.fill([(p + shift).ravel() for p in scaled], high, wide)
            differ &= moved == whole
        assert not differ.any()


@settings(max_examples=200)
@given(hnp.arrays(bool, st.tuples(sides, sides)), sides, sides)
def test_runs_up_to_a_tile_are_the_nearest_pixels(pixels, height, width):
    h, w = pixels.shape
    made = run_tile(run_lengths.runs(pixels).astype(np.int64), (h, w), (height, width))
    rows = (2 * np.arange(height) + 1) * h // (2 * height)
    columns = (2 * np.arange(width) + 1) * w // (2 * width)
    np.testing.assert_array_equal(pasted(made, height, width), pixels[np.ix_(rows, columns)])


def test_large_polygons_are_sampled_at_the_centres_of_tile_pixels():
    """An ellipse of 500 x 20 pixels: 112 samples across, four a row down."""
    angle = np.linspace(0, 2 * np.pi, 2000, endpoint=False)
    centre, radius = np.array([310.3, 70.2]), np.array([250.0, 10.0])
    points = centre + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inside, frame = polygon_tile([(points / 2).astype(np.float32)], (200, 400), (400, 800))
    assert frame == (60, 60, 501, 21)
    assert inside.shape == (84, TILE)
    x = 60 + (np.arange(TILE) + 0.5) * 501 / TILE
    y = 60 + (np.arange(84) + 0.5) / FINER
    distance = ((x - centre[0]) / radius[0]) ** 2 + ((y[:, None] - centre[1]) / radius[1]) ** 2
    clear = abs(distance - 1) > 1e-3
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(inside[clear], (distance < 1)[clear])


def test_large_runs_are_sampled_at_the_centres_of_tile_pixels():
    random = np.random.default_rng(3)
    pixels = np.zeros((300, 400), dtype=bool)
    pixels[20:270, 30:380] = random.random((250, 350)) < 0.5
    pixels[20, 30], pixels[269, 379] = True, True
    inside, frame = run_tile(run_lengths.runs(pixels).astype(np.int64), (300, 400), (600, 800))
    assert frame == (60, 40, 700, 500)
    rows = np.floor((40 + (np.arange(TILE) + 0.5) * 500 / TILE) / 2).astype(int)
    columns = np.floor((60 + (np.arange(TILE) + 0.5) * 700 / TILE) / 2).astype(int)
    np.testing.assert_array_equal(inside, pixels[np.ix_(rows, columns)])


@pytest.mark.parametrize("size", [1, TILE // FINER, TILE // FINER + 1, TILE + 1])
def test_around_the_size_of_a_tile(size):
    square = np.array([[3, 5], [3 + size, 5], [3 + size, 9], [3, 9]], dtype=np.float32)
    inside, frame = polygon_tile([square], (300, 300), (300, 300))
    assert frame == (3, 5, size, 4)
    assert inside.shape == (4 * FINER, min(FINER * size, TILE))
    assert inside.all()
    inside, frame = polygon_tile([square[:, ::-1].copy()], (300, 300), (300, 300))
    assert frame == (5, 3, 4, size)
    assert inside.shape == (min(FINER * size, TILE), 4 * FINER)
    assert inside.all()


def test_a_polygon_narrower_than_a_pixel_has_a_mask():
    line = np.array([[3.1, 5], [3.6, 5], [3.6, 15], [3.1, 15]], dtype=np.float32)
    inside, frame = polygon_tile([line], (20, 20), (20, 20))
    assert frame == (3, 5, 1, 10)
    assert inside.any(axis=1).all()


def test_nothing_inside_the_image_is_no_tile():
    outside = np.array([[-9, 1], [-2, 1], [-2, 9]], dtype=np.float32)
    assert polygon_tile([outside], (20, 20), (40, 40)) is None
    assert polygon_tile([], (20, 20), (40, 40)) is None
    assert run_tile(np.array([400]), (20, 20), (40, 40)) is None
