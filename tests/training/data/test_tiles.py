"""Tiles against whole masks of the resized image."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools import mask as coco

from lvdet.errors import InputError
from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.files.records import masks_from_segmentations
from lvdet.tables.masks import no_masks
from lvdet.training.data.batch import TILE
from lvdet.training.data.tiles import FINER, make_tiles

# pycocotools' own, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def polygon_tile(parts, original, size):
    masks = masks_from_segmentations([[np.ravel(part).tolist() for part in parts]], "masks")
    (made,) = make_tiles(masks, original, size, "masks")
    return made


def run_tile(pixels, size):
    (made,) = make_tiles(masks_from_bitmaps(pixels[None]), pixels.shape, size, "masks")
    return made


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


@settings(max_examples=100)
@given(sides, sides, small, small, st.integers(0, 10**6), st.integers(1, 3))
def test_polygons_up_to_a_tile_are_those_of_the_whole_image(h, w, height, width, seed, parts):
    """Drawn FINER times as large by pycocotools; pixels at an edge may differ, as the frame's
    corner moves the fifths of a sample that it rounds to."""
    random = np.random.default_rng(seed)
    angle = np.sort(random.uniform(0, 2 * np.pi, (parts, 7)))
    middle, radius = random.uniform(0, 1, (parts, 1, 2)), random.uniform(0.1, 0.7, (parts, 7, 1))
    around = np.stack([np.cos(angle), np.sin(angle)], axis=2)
    points = (middle + radius * around) * (w, h)
    made = polygon_tile(points, (h, w), (height, width))
    high, wide = FINER * height, FINER * width
    finer = points * (wide / w, high / h)
    whole = coco.decode(
        coco.merge(coco.frPyObjects([p.ravel().tolist() for p in finer], high, wide))
    )
    found = pasted(made, height, width, FINER)
    wrong = found != whole.astype(bool)
    y, x = np.nonzero(wrong)
    centres = np.stack([x, y], axis=1) + 0.5
    ends = np.concatenate([finer, finer[:, :1]], axis=1)
    segments = np.concatenate([np.stack([one[:-1], one[1:]], axis=1) for one in ends])
    assert all(distance(centre, segments).min() < 1.2 for centre in centres)


def distance(point, segments):
    """[S] from a point to each of [S, 2, 2] segments."""
    begin, end = segments[:, 0], segments[:, 1]
    along = end - begin
    part = ((point - begin) * along).sum(axis=1) / np.maximum((along**2).sum(axis=1), 1e-12)
    return np.linalg.norm(begin + part.clip(0, 1)[:, None] * along - point, axis=1)


@settings(max_examples=200)
@given(hnp.arrays(bool, st.tuples(sides, sides)), sides, sides)
def test_runs_up_to_a_tile_are_the_nearest_pixels(pixels, height, width):
    h, w = pixels.shape
    made = run_tile(pixels, (height, width))
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
    clear = abs(distance - 1) > 0.05  # half a sample is 0.04 of the height
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(inside[clear], (distance < 1)[clear])


def test_large_runs_are_sampled_at_the_centres_of_tile_pixels():
    random = np.random.default_rng(3)
    pixels = np.zeros((300, 400), dtype=bool)
    pixels[20:270, 30:380] = random.random((250, 350)) < 0.5
    pixels[20, 30], pixels[269, 379] = True, True
    inside, frame = run_tile(pixels, (600, 800))
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
    assert run_tile(np.zeros((20, 20), dtype=bool), (40, 40)) is None
    assert make_tiles(no_masks(2), (20, 20), (40, 40), "masks") == [None, None]


def test_masks_of_all_kinds_in_one_image():
    """Each has its own tile, whatever stands beside it."""
    pixels = np.zeros((20, 30), dtype=bool)
    pixels[2:9, 3:20] = True
    square = [4.0, 4, 12, 4, 12, 15, 4, 15]
    gone = [-9.0, 1, -2, 1, -2, 9]
    runs = {"size": [20, 30], "counts": masks_from_bitmaps(pixels[None]).row(0).decode()}
    masks = masks_from_segmentations([[square], None, runs, [gone], [gone, square]], "masks")
    before = masks.data.copy()
    made = make_tiles(masks, (20, 30), (40, 60), "masks")
    assert (made[1], made[3]) == (None, None)
    alone = [polygon_tile([square], (20, 30), (40, 60)), run_tile(pixels, (40, 60))]
    for place, expected in ((0, alone[0]), (2, alone[1]), (4, alone[0])):
        inside, frame = made[place]
        if place == 4:  # the part outside widens the frame
            assert frame[:2] == (0, 2)
            assert inside.sum() > 0
            continue
        assert frame == expected[1]
        np.testing.assert_array_equal(inside, expected[0])
    np.testing.assert_array_equal(masks.data, before)


def test_a_damaged_mask_is_an_input_error():
    masks = masks_from_bitmaps(np.ones((1, 20, 20), dtype=bool))
    masks.height[0] = 19
    with pytest.raises(InputError):
        make_tiles(masks, (19, 20), (40, 40), "a.png: masks")
