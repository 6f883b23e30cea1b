"""Places things in a picture from front to back, each where enough pixels stay visible.

Later things lie behind earlier ones, so the visible pixels of a thing never change again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.images.backdrop import Pixels
from lvdet.images.stencils import SIDE, stencil
from lvdet.images.things import Floats, Things

Code = NDArray[np.uint8]

#: The visible share below which a thing is placed elsewhere, or left out.
_LEAST_VISIBLE, _LEAST_PIXELS, _TRIES = 0.3, 16, 6
#: The share of covered pixels from which only essential things are added.
_FULL = 0.65


class Collage:
    """The thing that is visible at each pixel, and the cell of its stencil.

    ink:  uint16 [h, w] 0 in empty pixels, otherwise 4 * (1 + index in `laid`) + cell
    laid: the things that are visible somewhere, in the order in which they were placed
    middle: the x and y of their middles
    """

    def __init__(self, height: int, width: int) -> None:
        self.ink = np.zeros((height, width), dtype=np.uint16)
        self.laid: list[int] = []
        self.middle: list[tuple[int, int]] = []
        self._covered = 0

    def lay(
        self,
        rng: np.random.Generator,
        things: Things,
        essential: Sequence[bool],
        smallest: float,
    ) -> None:
        """Places the things. Essential ones are always visible, if need be at size `smallest`,
        unless the picture is full."""
        height, width = self.ink.shape
        number = len(things.row)
        places = np.floor(rng.random((number, _TRIES, 2)) * [height, width]).astype(np.int64)
        frames = _frames(things, things.diameter)
        looks = things.stencil.tolist()
        for thing, tries in enumerate(places.tolist()):
            if self._covered > _FULL * height * width and not essential[thing]:
                continue
            code = _code(looks[thing], *frames[thing])
            least = max(_LEAST_VISIBLE * np.count_nonzero(code), _LEAST_PIXELS)
            if any(self._put(thing, code, y, x, least) for y, x in tries):
                continue
            if essential[thing]:
                small = _frames(things, np.full(number, smallest))[thing]
                self._squeeze_in(rng, thing, _code(looks[thing], *small))

    def paint(self, things: Things, pixels: Pixels) -> None:
        """Colours those of the [3, h, w] pixels where a thing is visible."""
        laid = np.array(self.laid, dtype=np.int64)
        at = np.flatnonzero(self.ink)
        ink = self.ink.ravel()[at].astype(np.int64) - 4
        whose = ink >> 2
        tilt = 2 * things.tilt[laid] / things.diameter[laid, None]
        level = 1 - (tilt * np.array(self.middle, dtype=np.float64).reshape(-1, 2)).sum(axis=1)
        shade = np.stack([tilt[:, 0], tilt[:, 1], level]).astype(np.float32)
        across, down = _places(*self.ink.shape)
        light = shade[0].take(whose) * across.take(at)
        light += shade[1].take(whose) * down.take(at)
        light += shade[2].take(whose)
        for plane, colours in zip(pixels, things.palette[:, laid], strict=True):
            plane.reshape(-1)[at] = colours.astype(np.float32).take(ink) * light

    def _put(self, thing: int, code: Code, y: int, x: int, least: float) -> bool:
        """Puts the thing with its middle at (x, y), behind all others, if at least `least` pixels
        are visible."""
        high, wide = code.shape
        top, left = y - high // 2, x - wide // 2
        there = self.ink[max(top, 0) : top + high, max(left, 0) : left + wide]
        part = code[max(-top, 0) :, max(-left, 0) :][: there.shape[0], : there.shape[1]]
        seen = (there == 0) & (part > 0)
        visible = int(np.count_nonzero(seen))
        if visible < least:
            return False
        self.laid.append(thing)
        self.middle.append((x, y))
        np.copyto(there, part + np.uint16(4 * len(self.laid)), where=seen)
        self._covered += visible
        return True

    def _squeeze_in(self, rng: np.random.Generator, thing: int, code: Code) -> None:
        """Puts the thing at a free pixel, preferably one where enough of the thing is visible."""
        free = np.flatnonzero(self.ink == 0)
        width = self.ink.shape[1]
        for least in (max(_LEAST_VISIBLE * np.count_nonzero(code), 1.0), 1.0):
            for place in free[rng.integers(0, max(len(free), 1), 20 if len(free) else 0)].tolist():
                if self._put(thing, code, place // width, place % width, least):
                    return


@lru_cache(maxsize=8)
def _places(height: int, width: int) -> tuple[Pixels, Pixels]:
    """[h * w] the column and the row of each pixel."""
    columns = np.arange(width, dtype=np.float32)
    return np.tile(columns, height), np.repeat(np.arange(height, dtype=np.float32), width)


def _frames(things: Things, diameter: Floats) -> list[tuple[tuple[int, int], tuple[float, ...]]]:
    """The width and height of each thing's box in pixels, and the map from the box to its stencil:
    x' = a x + b y + c, y' = d x + e y + f."""
    inverse = things.inverse / diameter[:, None, None]
    (a, b), (c, d) = inverse.transpose(1, 2, 0)
    scale = 1 / np.abs(a * d - b * c)
    half = np.stack([np.hypot(d, b), np.hypot(a, c)], axis=1) * scale[:, None]
    size = 2 * half.astype(np.int64) + 3
    matrix = inverse * (SIDE / 2)
    offset = SIDE / 2 - np.einsum("nij,nj->ni", matrix, size / 2)
    maps = np.concatenate([matrix, offset[:, :, None]], axis=2).reshape(-1, 6)
    return [
        ((wide, high), tuple(numbers))
        for (wide, high), numbers in zip(size.tolist(), maps.tolist(), strict=True)
    ]


def _code(look: Sequence[int], size: tuple[int, int], numbers: tuple[float, ...]) -> Code:
    """[h, w] the cells of a stencil, sampled through a map."""
    from PIL import Image

    moved = _sheet(*look).transform(size, Image.Transform.AFFINE, numbers, Image.Resampling.NEAREST)
    return np.asarray(moved)


@cache
def _sheet(rim: int, fill: int, outline: int) -> Any:
    from PIL import Image

    return Image.fromarray(stencil(rim, fill, outline))
