"""Converts pixels to masks, and masks to pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.tables.masks import LARGEST_SIDE, RLE, Masks

#: Pixels processed at a time, to bound memory use.
PIXELS = 1 << 24


def masks_from_bitmaps(bitmaps: NDArray[Any], source: str = "masks") -> Masks:
    """Masks from [N, height, width] pixels, bool or integer; 0 is background.

    The strings are those that pycocotools writes.
    """
    if bitmaps.ndim != 3 or bitmaps.dtype.kind not in "biu":
        raise InputError(
            f"{source}: masks are {bitmaps.dtype} with shape {bitmaps.shape}, expected bool or "
            "uint8 with shape (N, height, width)"
        )
    count, height, width = bitmaps.shape
    # A run is at most of 32 bits, as pycocotools' are.
    if not (0 < height <= LARGEST_SIDE and 0 < width <= LARGEST_SIDE and height * width < 1 << 32):
        raise InputError(f"{source}: masks are {height} x {width} pixels, not a valid image size")
    step = max(1, PIXELS // (height * width))
    parts = [_encode(bitmaps[begin : begin + step]) for begin in range(0, max(count, 1), step)]
    return Masks.concatenate(parts)


def bitmaps_from_masks(masks: Masks, source: str = "masks") -> list[NDArray[np.bool_]]:
    """[height, width] pixels of each mask, True inside."""
    runs, offsets = _runs(masks, source)
    bitmaps = []
    for row, (height, width) in enumerate(zip(masks.height, masks.width, strict=True)):
        of_row = runs[offsets[row] : offsets[row + 1]]
        inside = np.arange(len(of_row)) % 2 == 1
        bitmaps.append(np.repeat(inside, of_row).reshape(width, height).T)
    return bitmaps


def areas_of_masks(masks: Masks, source: str = "masks") -> NDArray[np.float64]:
    """[N] the number of pixels inside of each mask."""
    runs, offsets = _runs(masks, source)
    row = np.repeat(np.arange(len(masks)), np.diff(offsets))
    inside = (np.arange(len(runs)) - offsets[row]) % 2
    sums = np.bincount(row, weights=runs * inside, minlength=len(masks))
    return sums.astype(np.float64)


def _runs(masks: Masks, source: str) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The runs of all masks, and where those of each begin; the first run is outside."""
    try:
        runs, offsets = _native.mask_runs(masks.columns, masks.height, masks.width, False)
    except ValueError as error:
        raise InputError(f"{source}: {error}") from None
    return runs, offsets


def _encode(bitmaps: NDArray[Any]) -> Masks:
    count, height, width = bitmaps.shape
    pixels = height * width
    inside = bitmaps if bitmaps.dtype == np.bool_ else bitmaps != 0
    # Where a pixel differs from the one before it in column order. The search goes row by row, as
    # the pixels lie in memory, and the few places found are sorted afterwards.
    change = np.empty(bitmaps.shape, dtype=np.bool_)
    np.not_equal(inside[:, 1:], inside[:, :-1], out=change[:, 1:])
    change[:, 0, 0] = inside[:, 0, 0]
    np.not_equal(inside[:, 0, 1:], inside[:, -1, :-1], out=change[:, 0, 1:])
    mask, at = np.divmod(np.flatnonzero(change), pixels)
    row, column = np.divmod(at, width)
    place = np.sort(mask * pixels + column * height + row)
    mask, at = np.divmod(place, pixels)
    # Runs are the differences between changes, the end of each mask being its last.
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(mask, minlength=count) + 1, out=offsets[1:])
    ends = np.empty(offsets[-1], dtype=np.int64)
    ends[np.arange(len(at)) + mask] = at
    ends[offsets[1:] - 1] = pixels
    runs = np.diff(ends, prepend=0)
    runs[offsets[:-1]] = ends[offsets[:-1]]
    data, bounds = _native.rle_encode(runs.astype(np.uint32), offsets)
    return Masks(
        data,
        bounds,
        np.full(count, RLE, dtype=np.uint8),
        np.full(count, height, dtype=np.int32),
        np.full(count, width, dtype=np.int32),
    )
