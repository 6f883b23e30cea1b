"""Polygons to pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def fill(
    parts: Sequence[Sequence[float] | NDArray[Any]], height: int, width: int
) -> NDArray[np.bool_]:
    """bool[height, width], True where the centre of a pixel is in any of the polygons.

    parts: polygons as x, y, x, y ...; those of fewer than 3 points have no inside

    Pixel (column i, row j) has its centre at (i + 0.5, j + 0.5). A polygon that crosses itself is
    filled by the even-odd rule. A centre just on an edge is inside if the edge is on the left of
    the polygon or on its top.
    """
    inside = np.zeros((height, width), dtype=np.bool_)
    for part in parts:
        points = np.asarray(part, dtype=np.float64).reshape(-1, 2)
        if len(points) >= 3:
            _fill_one(points, inside)
    return inside


def _fill_one(points: NDArray[np.float64], inside: NDArray[np.bool_]) -> None:
    """Adds a polygon to the pixels.

    Where an edge crosses the line through the centres of a row, the pixels to the right of it
    change sides; a running sum along the row says on which side each of them ends.
    """
    height, width = inside.shape
    x0, y0 = points[:, 0], points[:, 1]
    x1, y1 = np.concatenate((x0[1:], x0[:1])), np.concatenate((y0[1:], y0[:1]))
    row0 = np.ceil(y0 - 0.5).clip(0, height).astype(np.int64)
    row1 = np.concatenate((row0[1:], row0[:1]))
    top = np.minimum(row0, row1)
    rows = np.abs(row1 - row0)
    crossings = int(rows.sum())
    if not crossings:
        return
    first = int(top[rows > 0].min())
    row = np.arange(crossings) - np.repeat(np.cumsum(rows) - rows - top, rows)
    with np.errstate(divide="ignore", invalid="ignore"):  # level edges cross no row
        slope = (x1 - x0) / (y1 - y0)
    x = np.repeat(x0, rows) + (row + 0.5 - np.repeat(y0, rows)) * np.repeat(slope, rows)
    column = np.ceil(x - 0.5).clip(0, width).astype(np.int64)
    changes = np.bincount((row - first) * (width + 1) + column)
    last = int(row.max()) + 1
    table = np.zeros((last - first) * (width + 1), dtype=np.uint8)
    table[: len(changes)] = changes & 1
    sides = np.bitwise_xor.accumulate(table.reshape(last - first, width + 1), axis=1)
    inside[first:last] |= sides[:, :width].view(np.bool_)
