"""Outlines of masks as SVG paths, small enough for a page."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.tables.detections import masks_to_boxes
from lvdet.tables.masks import Masks

#: Cells along the longer side of a mask's box: details smaller than a cell are not drawn.
CELLS = 128
#: Distance in cells by which an outline may be off.
TOLERANCE = 0.7
#: Outlines of parts and holes that are drawn, the longest ones.
MOST_PARTS = 100

_Points = NDArray[np.float64]


def mask_outlines(masks: Masks, height: int, width: int) -> list[str]:
    """The `d` attribute of a path for each mask, in pixels; "" for an empty mask. Holes need
    `fill-rule: evenodd`.

    height, width: of the image, for masks that do not say
    """
    heights = np.where(masks.height > 0, masks.height, height).astype(np.int32)
    widths = np.where(masks.width > 0, masks.width, width).astype(np.int32)
    runs, offsets = _native.mask_runs(masks.columns, heights, widths, False)
    paths = []
    for row, box in enumerate(masks_to_boxes(masks)):
        ends = np.cumsum(runs[offsets[row] : offsets[row + 1]], dtype=np.int64)
        paths.append(_path(ends, box, int(heights[row]), int(widths[row])))
    return paths


def _path(ends: NDArray[np.int64], box: NDArray[np.float64], height: int, width: int) -> str:
    """The path of the mask whose runs end at these places, down the columns."""
    left, top = np.floor(np.clip(box[:2], 0, [width, height]))
    right, bottom = np.ceil(np.clip(box[:2] + box[2:], 0, [width, height]))
    longest = max(right - left, bottom - top)
    if min(right - left, bottom - top) <= 0 or len(ends) < 2:
        return ""
    step = max(1.0, longest / CELLS)
    columns = np.arange(left + step / 2, right, step).astype(np.int64)
    rows = np.arange(top + step / 2, bottom, step).astype(np.int64)
    inside = np.searchsorted(ends, columns * height + rows[:, None], side="right") % 2 == 1
    parts = sorted(_boundaries(inside), key=len, reverse=True)[:MOST_PARTS]
    path, digits = "", 1 if step < 2 else 0
    for part in parts:
        points = np.round(_simplified(_midpoints(part)) * step + [left, top], digits)
        path += "M" + " ".join(f"{value:g}" for value in points.ravel().tolist()) + "Z"
    return path


def _boundaries(inside: NDArray[np.bool_]) -> list[_Points]:
    """Closed lines along the edges between cells that are inside and cells that are not: the (x, y)
    of their corners, with the inside on the right."""
    cells = np.pad(inside, 1)
    following: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    across = cells[1:, 1:-1].astype(np.int8) - cells[:-1, 1:-1]  # [rows + 1, columns]
    for y, x in np.argwhere(across).tolist():
        if across[y, x] > 0:
            following[x, y].append((x + 1, y))
        else:
            following[x + 1, y].append((x, y))
    down = cells[1:-1, 1:].astype(np.int8) - cells[1:-1, :-1]  # [rows, columns + 1]
    for y, x in np.argwhere(down).tolist():
        if down[y, x] > 0:
            following[x, y + 1].append((x, y))
        else:
            following[x, y].append((x, y + 1))
    found = []
    while following:
        start = at = next(iter(following))
        line = []
        while True:
            line.append(at)
            after = following[at].pop()
            if not following[at]:
                del following[at]
            at = after
            if at == start:
                break
        found.append(np.array(line, dtype=np.float64))
    return found


def _midpoints(corners: _Points) -> _Points:
    """The middles of the edges of a closed line: steps become diagonals."""
    return (corners + np.roll(corners, -1, axis=0)) / 2


def _simplified(points: _Points) -> _Points:
    """Fewer points of a closed line, by Douglas and Peucker."""
    far = int(np.argmax(((points - points[0]) ** 2).sum(axis=1)))
    closed = np.vstack([points, points[:1]])
    kept = np.zeros(len(closed), dtype=bool)
    kept[[0, far]] = True
    todo = [(0, far), (far, len(points))]
    while todo:
        first, last = todo.pop()
        if last - first < 2:
            continue
        way = closed[last] - closed[first]
        off = closed[first + 1 : last] - closed[first]
        length = np.hypot(*way)
        distance = (
            np.abs(way[0] * off[:, 1] - way[1] * off[:, 0]) / length
            if length
            else np.hypot(off[:, 0], off[:, 1])
        )
        worst = int(np.argmax(distance))
        if distance[worst] > TOLERANCE:
            middle = first + 1 + worst
            kept[middle] = True
            todo += [(first, middle), (middle, last)]
    return closed[:-1][kept[:-1]]
