"""Masks to tiles: the pixels of an object inside its frame."""

from __future__ import annotations

from math import ceil, floor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.rasters import polygons, run_lengths
from lvdet.training.data.batch import TILE

#: Samples of a polygon to a pixel, in each direction: a mask's target has 28 for a whole object,
#: more than a small object has pixels.
FINER = 4

#: x0, y0, width and height of a frame in whole pixels.
Frame: TypeAlias = tuple[int, int, int, int]


def polygon_tile(
    parts: list[NDArray[np.float32]], original: tuple[int, int], size: tuple[int, int]
) -> tuple[NDArray[np.bool_], Frame] | None:
    """The tile bool[h, w] of polygons, and its frame in the resized image.

    original, size: height and width of the image before and after resizing

    The frame is the polygons' bounds in whole pixels. Its tile has FINER samples to a pixel, but
    no more than TILE in all. A sample is in the object where its centre is. None: the polygons have
    no part inside the image.
    """
    scale = np.array([size[1] / original[1], size[0] / original[0]])
    scaled = [part * scale for part in parts]
    if not scaled:
        return None
    points = np.concatenate(scaled)
    frame = _frame((*points.min(axis=0).tolist(), *points.max(axis=0).tolist()), size)
    if frame is None:
        return None
    x0, y0, width, height = frame
    wide, high = min(FINER * width, TILE), min(FINER * height, TILE)
    corner, ratio = np.array([x0, y0]), np.array([wide / width, high / height])
    return polygons.fill([(part - corner) * ratio for part in scaled], high, wide), frame


def run_tile(
    counts: NDArray[np.int64], original: tuple[int, int], size: tuple[int, int]
) -> tuple[NDArray[np.bool_], Frame] | None:
    """The same of a mask's run lengths: a tile has its pixels, enlarged (nearest) where the image
    is; of a frame larger than TILE, samples of them."""
    bounds = run_lengths.bounds(counts, original[0])
    if bounds is None:
        return None
    (h, w), (height, width) = original, size
    x0, y0, x1, y1 = bounds
    frame = _frame((x0 * width / w, y0 * height / h, x1 * width / w, y1 * height / h), size)
    if frame is None:
        return None
    columns = _sources(frame[0], frame[2], w, width)
    rows = _sources(frame[1], frame[3], h, height)
    begin, end = int(columns[0]), int(columns[-1]) + 1
    cut = run_lengths.columns(counts, h, begin, end)
    return cut.T[columns - begin][:, rows].T, frame


def _frame(bounds: tuple[float, float, float, float], size: tuple[int, int]) -> Frame | None:
    x0, y0 = max(0, floor(bounds[0])), max(0, floor(bounds[1]))
    x1, y1 = min(size[1], ceil(bounds[2])), min(size[0], ceil(bounds[3]))
    return (x0, y0, x1 - x0, y1 - y0) if x0 < x1 and y0 < y1 else None


def _sources(begin: int, length: int, original: int, resized: int) -> NDArray[np.int64]:
    """The pixel of the original that the centre of each of a tile's pixels is in."""
    samples = min(length, TILE)
    centre = begin + (np.arange(samples) + 0.5) * (length / samples)
    found: NDArray[np.int64] = (centre * original / resized).astype(np.int64)
    return np.minimum(found, original - 1)
