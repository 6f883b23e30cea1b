"""Ellipses inside boxes, as run-length masks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.masks import RLE, Masks

#: Mask columns processed at a time, to bound memory use.
_COLUMNS = 2_000_000


def ellipses(
    box: NDArray[np.int64], height: NDArray[Any], width: NDArray[Any]
) -> tuple[Masks, NDArray[np.float64]]:
    """Masks of the ellipses in [N, 4] whole-pixel boxes, and [N] their areas in pixels.

    height, width: [N] pixels of each row's image. A box is its mask's tight box; it must lie
    inside the image with at least one free pixel row below it, so that no run but the first
    is empty and the strings are the ones pycocotools would write.
    """
    from lvdet import _native

    parts, areas = [], []
    ends = np.cumsum(box[:, 2])
    cuts = np.searchsorted(ends, np.arange(_COLUMNS, ends[-1] if len(ends) else 0, _COLUMNS))
    for rows in np.split(np.arange(len(box)), cuts):
        counts, offsets, area = _runs(box[rows], height[rows], width[rows])
        data, bounds = _native.rle_encode(counts, offsets)
        parts.append(
            Masks(
                data,
                bounds,
                np.full(len(rows), RLE, dtype=np.uint8),
                np.ascontiguousarray(height[rows], dtype=np.int32),
                np.ascontiguousarray(width[rows], dtype=np.int32),
            )
        )
        areas.append(area)
    return Masks.concatenate(parts), np.concatenate(areas)


def _runs(
    box: NDArray[np.int64], height: NDArray[Any], width: NDArray[Any]
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.float64]]:
    """Column-major runs of N ellipses: counts, [N + 1] where each begins, and [N] areas.

    A column of the ellipse is a run of ones; its length is scaled so that the middle column
    is as tall as the box, and no column is empty.
    """
    x, y, w, h = box.T
    first = np.cumsum(w) - w
    row = np.repeat(np.arange(len(box)), w)
    column = np.arange(len(row)) - first[row]
    middle = 1.0 - ((w % 2 == 0) / w) ** 2
    across = (2 * column + 1) / w[row] - 1.0
    tall = np.rint(h[row] * np.sqrt((1.0 - across * across) / middle[row])).astype(np.int64)
    tall = np.clip(tall, 1, h[row])
    begin = (x[row] + column) * height[row] + y[row] + (h[row] - tall) // 2
    offsets = np.concatenate([[0], np.cumsum(2 * w + 1)]).astype(np.int64)
    # Where colour changes, with each mask's end as the last change; runs are the differences.
    change = np.empty(offsets[-1], dtype=np.int64)
    at = 2 * np.arange(len(row)) + row
    change[at], change[at + 1] = begin, begin + tall
    change[offsets[1:] - 1] = height.astype(np.int64) * width
    counts = np.diff(change, prepend=0)
    counts[offsets[:-1]] = change[offsets[:-1]]
    area = np.add.reduceat(tall, first) if len(box) else tall
    return counts.astype(np.uint32), offsets, area.astype(np.float64)
