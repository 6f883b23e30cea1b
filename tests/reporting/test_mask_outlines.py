"""Outlines enclose the pixels of their masks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lvdet import _native
from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.reporting.mask_outlines import CELLS, mask_outlines
from lvdet.simulation.simulate import simulate
from lvdet.tables.masks import POLYGONS, Masks

HEIGHT, WIDTH = 48, 60


def drawn(path: str, height: int, width: int) -> NDArray[np.bool_]:
    """[height, width] the pixels whose middle is inside, by crossings to its right."""
    y, x = np.mgrid[:height, :width] + 0.5
    inside = np.zeros((height, width), dtype=bool)
    for part in filter(None, path.replace("Z", "").split("M")):
        points = np.array(part.split(), dtype=float).reshape(-1, 2)
        for (x0, y0), (x1, y1) in zip(points, np.roll(points, -1, axis=0), strict=True):
            crossed = (y0 <= y) != (y1 <= y)
            with np.errstate(divide="ignore", invalid="ignore"):
                at = x0 + (y - y0) / (y1 - y0) * (x1 - x0)
            inside ^= crossed & (x < at)
    return inside


def overlap(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    return float((a & b).sum() / (a | b).sum())


def rectangle(top: int, left: int, bottom: int, right: int) -> NDArray[np.bool_]:
    pixels = np.zeros((HEIGHT, WIDTH), dtype=bool)
    pixels[top:bottom, left:right] = True
    return pixels


@pytest.mark.parametrize(
    "pixels",
    [
        rectangle(5, 7, 30, 40),
        rectangle(0, 0, HEIGHT, WIDTH),
        rectangle(10, 3, 12, 55),
        rectangle(4, 4, 40, 50) & ~rectangle(12, 12, 30, 36),
        rectangle(2, 2, 20, 20) | rectangle(20, 20, 40, 44),
        rectangle(0, 30, 20, WIDTH) | rectangle(28, 0, HEIGHT, 22),
    ],
    ids=["box", "whole image", "thin", "hole", "parts that touch in a corner", "parts"],
)
def test_parts_and_holes(pixels: NDArray[np.bool_]) -> None:
    (path,) = mask_outlines(masks_from_bitmaps(pixels[None]), HEIGHT, WIDTH)
    assert overlap(drawn(path, HEIGHT, WIDTH), pixels) > 0.95


def test_ellipses_of_all_sizes() -> None:
    _, dt = simulate(4, 6, masks=True, seed=1)
    assert dt.masks is not None
    large = dt.masks[dt.box[:, 2:].min(axis=1) >= 12][:12]
    for path, row in zip(mask_outlines(large, 1, 1), range(len(large)), strict=True):
        height, width = int(large.height[row]), int(large.width[row])
        left, top, wide, high = _native.mask_boxes(large[[row]].columns)[0]
        y, x = np.mgrid[:height, :width] + 0.5
        ellipse = ((x - left) / wide * 2 - 1) ** 2 + ((y - top) / high * 2 - 1) ** 2 <= 1
        assert overlap(drawn(path, height, width), ellipse) > 0.93


def test_an_empty_mask_has_no_outline() -> None:
    nothing = np.zeros((1, HEIGHT, WIDTH), dtype=bool)
    assert mask_outlines(masks_from_bitmaps(nothing), HEIGHT, WIDTH) == [""]


def test_polygons_are_of_the_image() -> None:
    """They do not say how large it is; what is outside is not drawn."""
    data = np.frombuffer(_native.polygon_bytes([[-20, 10, 30, 10, 30, 40, -20, 40]]), np.uint8)
    masks = Masks(
        data,
        np.array([0, len(data)]),
        np.array([POLYGONS], np.uint8),
        np.zeros(1, np.int32),
        np.zeros(1, np.int32),
    )
    (path,) = mask_outlines(masks, HEIGHT, WIDTH)
    assert overlap(drawn(path, HEIGHT, WIDTH), rectangle(10, 0, 40, 30)) > 0.95


def test_noise_and_large_masks_have_short_outlines() -> None:
    noise = np.random.default_rng(0).random((1, 400, 400)) < 0.5
    square = np.zeros((1, 3000, 3000), dtype=bool)
    square[:, 100:2900, 100:2900] = True
    (path,) = mask_outlines(masks_from_bitmaps(noise), 400, 400)
    assert len(path) < 100_000
    (path,) = mask_outlines(masks_from_bitmaps(square), 3000, 3000)
    assert len(path) < 100
    points = np.array(path[1:-1].split(), dtype=float).reshape(-1, 2)
    assert np.abs(points.min(axis=0) - 100).max() <= 2800 / CELLS
    assert np.abs(points.max(axis=0) - 2900).max() <= 2800 / CELLS
