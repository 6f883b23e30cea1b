"""Converts masks to tiles: the pixels of an object inside its frame."""

from __future__ import annotations

from math import ceil, floor
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.bitmaps import bitmaps_from_masks
from lvdet.tables.detections import masks_to_boxes
from lvdet.tables.masks import NONE, POLYGONS, Masks
from lvdet.training.data.batch import TILE

#: Samples of a polygon to a pixel, in each direction: a mask's target has 28 for a whole object,
#: more than a small object has pixels.
FINER = 4

#: x0, y0, width and height of a frame in whole pixels.
Frame: TypeAlias = tuple[int, int, int, int]
#: The pixels of an object inside its frame, bool[h, w].
Tile: TypeAlias = tuple[NDArray[np.bool_], Frame]


def make_tiles(
    masks: Masks, original: tuple[int, int], size: tuple[int, int], source: str
) -> list[Tile | None]:
    """The tile of each mask, and its frame in the resized image; None: no pixels in the image.

    original, size: height and width of the image before and after resizing

    The frame is the bounds of the mask in whole pixels. The tile of polygons has FINER samples per
    pixel, but no more than TILE in all, drawn as COCO draws polygons. That of run lengths has
    their pixels, enlarged (nearest) where the image is; of a frame larger than TILE, samples.
    """
    scale = np.array([size[1] / original[1], size[0] / original[0]])
    try:
        bounds = masks_to_boxes(masks)
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None
    corners = np.concatenate([bounds[:, :2], bounds[:, :2] + bounds[:, 2:]], axis=1)
    frames = [_frame(row, size) for row in (corners * np.tile(scale, 2)).tolist()]
    drawn = [row for row, frame in enumerate(frames) if frame and masks.kind[row] != NONE]
    tiles: list[Tile | None] = [None] * len(masks)
    moved = masks[drawn]
    for place, row in enumerate(drawn):
        if moved.kind[place] == POLYGONS:
            x0, y0, width, height = frames[row] or (0, 0, 0, 0)
            side = np.minimum(FINER * np.array([width, height]), TILE)
            ratio = side / (width, height)
            points = _points(moved, place)
            points *= scale * ratio
            points -= (x0, y0) * ratio
            moved.width[place], moved.height[place] = side
    for row, polygons, inside in zip(
        drawn, moved.kind == POLYGONS, bitmaps_from_masks(moved, source), strict=True
    ):
        x0, y0, width, height = frame = frames[row] or (0, 0, 0, 0)
        if not polygons:
            rows = _sources(y0, height, original[0], size[0])
            columns = _sources(x0, width, original[1], size[1])
            inside = inside[np.ix_(rows, columns)]
        tiles[row] = inside, frame
    return tiles


def _frame(bounds: list[float], size: tuple[int, int]) -> Frame | None:
    x0, y0 = max(0, floor(bounds[0])), max(0, floor(bounds[1]))
    x1, y1 = min(size[1], ceil(bounds[2])), min(size[0], ceil(bounds[3]))
    return (x0, y0, x1 - x0, y1 - y0) if x0 < x1 and y0 < y1 else None


def _points(masks: Masks, row: int) -> NDArray[np.float64]:
    """[n, 2] the points of all polygons of a row, to modify in place."""
    content = masks.data[masks.offsets[row] : masks.offsets[row + 1]]
    head = 4 * (1 + int(content[:4].view(np.uint32)[0]))
    return content[head:].view(np.float64).reshape(-1, 2)


def _sources(begin: int, length: int, original: int, resized: int) -> NDArray[np.int64]:
    """The pixel of the original image that contains the centre of each tile pixel."""
    samples = min(length, TILE)
    centre = begin + (np.arange(samples) + 0.5) * (length / samples)
    found: NDArray[np.int64] = (centre * original / resized).astype(np.int64)
    return np.minimum(found, original - 1)
