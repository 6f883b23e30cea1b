"""Masks of boxes, 28 x 28 probabilities each, as run lengths in the image."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lvdet import _native
from lvdet.tables.masks import RLE, Masks

#: Pixels that are computed at a time, in windows of boxes: the memory of pasting is about ten
#: bytes each.
WINDOW_PIXELS = 1 << 24


def paste(chance: Tensor, box: Tensor, size: Tensor) -> Masks:
    """n masks, each in an image of its own.

    chance: [n, m, m] float32 in [0, 1], the mask of each box stretched over it
    box:    [n, 4] float64 x1, y1, x2, y2 in pixels of the image
    size:   [n, 2] int64 height and width of the image

    A pixel is the object's where the map, bilinear and 0 outside of itself, is 0.5 or more at the
    pixel's centre.
    """
    data, offsets = _native.rle_encode(*runs_of(chance, box, size))
    height, width = np.ascontiguousarray(size.cpu().numpy().T, dtype=np.int32)
    return Masks(data, offsets, np.full(len(size), RLE, dtype=np.uint8), height, width)


def runs_of(
    chance: Tensor, box: Tensor, size: Tensor
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The runs of n masks column by column, zeros first: counts [M], and [n + 1] where those of
    each mask begin."""
    mask: list[NDArray[np.int64]] = []
    edge: list[NDArray[np.int64]] = []
    window = _windows(box, size)
    for rows in _buckets(window[:, 2:].cpu().numpy()):
        place = torch.from_numpy(rows).to(box.device)
        found = _edges(chance[place], box[place], window[place], size[place, 0])
        mask.append(rows[found[0]])
        edge.append(found[1])
    return _counts(mask, edge, size.prod(dim=1).cpu().numpy())


def _windows(box: Tensor, size: Tensor) -> Tensor:
    """[n, 4] int64 x, y, w, h of the pixels that can belong to the masks.

    Half a cell outside of the map's outermost centres the bilinear value is half of theirs, so it
    falls below 0.5 right at the box. A pixel more on each side, for what is rounded.
    """
    begin = (torch.floor(box[:, :2] - 0.5).long() - 1).clamp(min=0)
    end = torch.minimum(torch.ceil(box[:, 2:] - 0.5).long() + 2, size.flip(1))
    return torch.cat([begin, (end - begin).clamp(min=0)], dim=1)


def _buckets(size: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Rows of windows of about the same width and height, so many that their pixels fit."""
    exponent = np.frexp(np.maximum(size - 1, 0).astype(np.float64))[1]
    _, group = np.unique(exponent, axis=0, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1):
        if len(rows) == 0:
            continue
        pixels = int(np.prod(size[rows].max(axis=0)))
        step = max(1, WINDOW_PIXELS // max(pixels, 1))
        for begin in range(0, len(rows), step):
            yield rows[begin : begin + step]


def _edges(
    chance: Tensor, box: Tensor, window: Tensor, height: Tensor
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where runs of the object's pixels begin and end in their columns: which mask, rising, and
    at which pixel of the image, counted column by column. Beginnings and ends take turns."""
    across, down = (int(side) for side in window[:, 2:].amax(dim=0))
    side = chance.shape[-1]
    padded = torch.nn.functional.pad(chance, (1, 1, 1, 1))
    lines = _between(padded, *_cells(box[:, 1], box[:, 3], window[:, 1], down, side))
    # [n, w, h], as the runs go down the columns
    columns = _cells(box[:, 0], box[:, 2], window[:, 0], across, side)
    inside = _between(lines.mT.contiguous(), *columns) >= 0.5
    inside &= _until(window[:, 2], across)[:, :, None] & _until(window[:, 3], down)[:, None, :]
    bits = torch.nn.functional.pad(inside, (1, 1))
    mask, column, line = (bits[:, :, 1:] != bits[:, :, :-1]).nonzero(as_tuple=True)
    pixel = (column + window[mask, 0]) * height[mask] + line + window[mask, 1]
    return mask.cpu().numpy(), pixel.cpu().numpy()


def _cells(
    low: Tensor, high: Tensor, begin: Tensor, count: int, side: int
) -> tuple[Tensor, Tensor]:
    """[n, count] the cell of a map with a border of 0 that is at pixels from `begin` on or before
    them, in one direction, and [n, count] float32 how far on the way to the next they are."""
    pixel = begin[:, None] + torch.arange(count, device=low.device)
    place = (pixel + 0.5 - low[:, None]) / (high - low)[:, None] * side + 0.5
    place = place.nan_to_num(nan=0.0).clamp(0, side + 1)
    cell = place.long().clamp(max=side)
    return cell, (place - cell).float()


def _between(rows: Tensor, cell: Tensor, part: Tensor) -> Tensor:
    """[n, count, m] what is between rows of [n, side + 2, m].

    Not a product of matrices, which a GPU may round to ten bits (TF32): at 0.5 that shows.
    """
    mask = torch.arange(len(rows), device=rows.device)[:, None]
    return rows[mask, cell].lerp_(rows[mask, cell + 1], part[:, :, None])


def _until(length: Tensor, count: int) -> Tensor:
    """[n, count] the places before each length."""
    return torch.arange(count, device=length.device) < length[:, None]


def _counts(
    mask: list[NDArray[np.int64]], edge: list[NDArray[np.int64]], pixels: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """The lengths between edges, of the images' first pixels to their last ([n] `pixels`)."""
    masks = len(pixels)
    of = np.concatenate([*mask, np.zeros(0, dtype=np.int64)])
    at = np.concatenate([*edge, np.zeros(0, dtype=np.int64)])
    order = np.argsort(of, kind="stable")
    of, at = of[order], at[order]
    # A run that reaches the bottom goes on at the top of the next column.
    joined = (of[1:] == of[:-1]) & (at[1:] == at[:-1])
    keep = np.ones(len(of), dtype=bool)
    keep[1:] &= ~joined
    keep[:-1] &= ~joined
    of, at = of[keep], at[keep]
    inner = np.bincount(of, minlength=masks)
    last = np.zeros(masks, dtype=np.int64)
    end = np.cumsum(inner)
    some = inner > 0
    last[some] = at[end[some] - 1]
    ends_before = last < pixels  # else the last run reaches the image's end
    offsets = np.concatenate([[0], np.cumsum(inner + ends_before)]).astype(np.int64)
    stop = np.empty(offsets[-1], dtype=np.int64)
    stop[np.arange(len(at)) + np.concatenate([[0], np.cumsum(ends_before)])[:-1][of]] = at
    stop[offsets[1:][ends_before] - 1] = pixels[ends_before]
    counts = np.diff(stop, prepend=0)
    counts[offsets[:-1]] = stop[offsets[:-1]]
    return counts.astype(np.uint32), offsets
