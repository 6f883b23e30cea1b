"""Pastes masks of boxes, 28 x 28 probabilities each, as run lengths in the image."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lvdet import _native
from lvdet.errors import InputError
from lvdet.tables.masks import LARGEST_SIDE, RLE, Masks
from lvdet.threads import thread_count


def paste(chance: Tensor, box: NDArray[np.float64], size: NDArray[np.int64]) -> Masks:
    """n masks, each in an image of its own.

    chance: [n, m, m] floats in [0, 1], the mask of each box stretched over it; on any device
    box:    [n, 4] x1, y1, x2, y2 in pixels of the image
    size:   [n, 2] height and width of the image

    A pixel belongs to the object if the map, interpolated linearly and 0 beyond its edges, is 0.5
    or more at the pixel's centre: Detectron2's rule. A box without an area, or with a corner that
    is not finite, has no pixels. Neither does a pixel belong whose value would depend on a map
    value that is not finite.
    """
    _check(chance, box, size)
    height, width = np.ascontiguousarray(size.T, dtype=np.int32)
    data, offsets = _native.paste_masks(
        chance.to("cpu", torch.float32).contiguous().numpy(),
        np.ascontiguousarray(box, dtype=np.float64),
        height,
        width,
        thread_count(),
    )
    return Masks(data, offsets, np.full(len(size), RLE, dtype=np.uint8), height, width)


def _check(chance: Tensor, box: NDArray[Any], size: NDArray[Any]) -> None:
    masks, side = len(box), chance.shape[-1]
    shapes = tuple(chance.shape), box.shape, size.shape
    if shapes != ((masks, side, side), (masks, 4), (masks, 2)):
        maps, boxes, sizes = (list(shape) for shape in shapes)
        raise InputError(
            f"paste: maps are {maps}, boxes {boxes} and sizes {sizes}, "
            "expected [n, m, m], [n, 4] and [n, 2]"
        )
    wrong = ((size < 1) | (size > LARGEST_SIDE)).any(axis=1)
    if wrong.any():
        row = int(np.argmax(wrong))
        height, width = size[row].tolist()
        raise InputError(
            f"paste: the image of mask {row} has {height} x {width} pixels, "
            f"expected 1 to {LARGEST_SIDE:,} a side"
        )
