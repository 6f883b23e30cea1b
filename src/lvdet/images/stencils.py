"""Things drawn once at a fixed size, to be sampled under any rotation, stretch and scale."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from lvdet.images.outlines import OUTLINES, Floats, Loops, shapeless

#: Cells a side of a stencil, which covers [-1, 1] both ways; and of the grid of distances.
SIDE, _COARSE = 256, 96
#: What a cell of a stencil holds.
OUTSIDE, MAIN, SECOND, RIM = 0, 1, 2, 3
#: Width of a rim where the radius is 1.
_RIM_WIDTH = 0.13
#: Outlines that no class has; they come after those of the classes.
SHAPELESS = 18

#: Where the second colour is, by place in the thing.
FILLS: dict[str, Callable[[Floats, Floats], NDArray[np.bool_]]] = {
    "plain": lambda x, y: np.zeros(np.broadcast(x, y).shape, dtype=np.bool_),
    "striped": lambda x, y: ((y + 0.0 * x) / 0.22 + 20.5) % 2 < 1,
    "dotted": lambda x, y: _dots(x, y, 0.46, 0.155),
    "checked": lambda x, y: (np.floor(x / 0.32 + 0.5) + np.floor(y / 0.32 + 0.5)) % 2 == 0,
    "ringed": lambda x, y: (np.hypot(x, y) / 0.2) % 2 < 1,
    "halved": lambda x, y: x + 0.0 * y > 0,
    "latticed": lambda x, y: ((x / 0.4) % 1 < 0.3) | ((y / 0.4) % 1 < 0.3),
    "chevroned": lambda x, y: ((y - np.abs(x)) / 0.25 + 20) % 2 < 1,
}


@cache
def stencil(rim: int, fill: int, outline: int) -> NDArray[np.uint8]:
    """[SIDE, SIDE] what is where in the thing."""
    depth = _depth(outline)
    code = _fill(fill)
    if rim:
        code = np.where(depth < _RIM_WIDTH, np.uint8(RIM), code)
    return code * (depth > 0)


@cache
def _fill(fill: int) -> NDArray[np.uint8]:
    second = list(FILLS.values())[fill](*_axes(SIDE))
    return np.where(second, SECOND, MAIN).astype(np.uint8)


@cache
def _depth(outline: int) -> NDArray[np.float32]:
    """[SIDE, SIDE] distance to the outline, negative outside; between the places of a coarser
    grid it is interpolated."""
    coarse = _depth_in(_loops()[outline])
    place = np.clip((np.arange(SIDE) + 0.5) * (len(coarse) / SIDE) - 0.5, 0, len(coarse) - 1)
    left = np.minimum(place.astype(np.int64), len(coarse) - 2)
    part = (place - left).astype(np.float32)
    rows = coarse[left] + part[:, None] * (coarse[left + 1] - coarse[left])
    depth: NDArray[np.float32] = rows[:, left] + part * (rows[:, left + 1] - rows[:, left])
    return depth


@lru_cache(maxsize=1)
def _loops() -> list[Loops]:
    return [*OUTLINES.values(), *shapeless(SHAPELESS)]


def _axes(side: int) -> tuple[Floats, Floats]:
    middle = np.linspace(1 / side - 1, 1 - 1 / side, side)
    return middle[None, :], middle[:, None]


def _depth_in(loops: Loops) -> NDArray[np.float32]:
    """The same, computed from the loops."""
    x, y = _axes(_COARSE)
    inside = np.zeros((_COARSE, _COARSE), dtype=np.bool_)
    nearest = np.full((_COARSE, _COARSE), np.inf)
    for loop in loops:
        for (x0, y0), (x1, y1) in zip(
            loop.tolist(), np.roll(loop, -1, axis=0).tolist(), strict=True
        ):
            if y0 != y1:
                crosses = (y0 <= y) != (y1 <= y)
                inside ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
            dx, dy = x1 - x0, y1 - y0
            along = np.clip(((x - x0) * dx + (y - y0) * dy) / max(dx * dx + dy * dy, 1e-12), 0, 1)
            np.minimum(
                nearest, (x - x0 - along * dx) ** 2 + (y - y0 - along * dy) ** 2, out=nearest
            )
    distance = np.sqrt(nearest).astype(np.float32)
    depth: NDArray[np.float32] = np.where(inside, distance, -distance)
    return depth


def _dots(x: Floats, y: Floats, spacing: float, radius: float) -> NDArray[np.bool_]:
    """Dots in rows, every second row shifted by half a step."""
    row = np.floor(y / spacing + 0.5)
    u = x / spacing + 0.5 * (row % 2)
    across, down = (u - np.floor(u + 0.5)) * spacing, y - row * spacing
    return np.hypot(across, down) < radius
