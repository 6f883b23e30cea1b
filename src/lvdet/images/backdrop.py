"""Backgrounds and camera effects: textures, light, blur and grain.

Pixels are float32 [3, h, w], 0–255. They are kept as planes because NumPy is several times faster
on whole rows than on triples.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.float32]

_STOCK_SIDE = 640


def background(rng: np.random.Generator, height: int, width: int) -> Pixels:
    """[3, h, w] a textured background: soft patches of colour, marbling and sometimes planks."""
    grey = rng.uniform(40, 205)
    base = grey + rng.normal(0, 22, (3, 1, 1))
    patches = _bumps(rng, int(rng.integers(2, 8)), height, width)
    colour = rng.normal(0, 1, (3, *patches)) * rng.uniform(8, 22)
    colour += rng.normal(0, 1, patches) * rng.uniform(8, 26)
    ground = _smooth((base + colour).astype(np.float32), height, width)
    marbled = _bumps(rng, int(rng.integers(12, 50)), height, width)
    tone = _smooth(rng.normal(0, rng.uniform(4, 17), marbled).astype(np.float32), height, width)
    if rng.random() < 0.5:
        tone += _planks(rng, height, width)
    ground += tone
    return ground


def expose(rng: np.random.Generator, pixels: Pixels) -> NDArray[np.uint8]:
    """[h, w, 3] the picture that a camera takes, with coloured light from one side, blur and
    grain."""
    _, height, width = pixels.shape
    strength, angle = rng.uniform(0, 0.35), rng.uniform(0, 2 * np.pi)
    exposure = np.exp(rng.normal(0, 0.15))
    across = np.linspace(-1, 1, width) * (strength * np.cos(angle) * exposure)
    down = (1 + np.linspace(-1, 1, height) * (strength * np.sin(angle))) * exposure
    light = down.astype(np.float32)[:, None] + across.astype(np.float32)
    side = float(rng.uniform(0.1, 0.24))
    white = np.exp(rng.normal(0, 0.05, 3)).astype(np.float32)
    level, rough = np.float32(rng.uniform(-8, 12)), np.float32(rng.uniform(2, 10))
    picture = np.empty((height, width, 3), dtype=np.uint8)
    # One plane at a time, because one fits into the processor's cache.
    for band, grain in enumerate(_grain(rng, height, width)):
        seen = _blurred(pixels[band], side)
        seen *= light
        seen *= white[band]
        seen += grain * rough
        seen += level
        picture[:, :, band] = np.clip(seen, 0, 255, out=seen)
    return picture


def _bumps(rng: np.random.Generator, cells: int, height: int, width: int) -> tuple[int, int]:
    """The points of a grid with `cells` along the longer side, stretched at random."""
    scale, stretch = max(height, width) / cells, np.exp(rng.normal(0, 0.35))
    return max(2, round(height * stretch / scale)), max(2, round(width / stretch / scale))


def _smooth(grid: Pixels, height: int, width: int) -> Pixels:
    """[..., h, w] the values of a grid [..., gh, gw], interpolated smoothly."""
    rows: Pixels = np.matmul(_steps(grid.shape[-2], height), grid, dtype=np.float32)
    values: Pixels = np.matmul(rows, _steps(grid.shape[-1], width).T, dtype=np.float32)
    return values


@lru_cache(maxsize=512)
def _steps(points: int, length: int) -> Pixels:
    """[length, points] the weight of each point at each place, at most two of them nonzero."""
    place = np.linspace(0, points - 1, length)
    left = np.minimum(place.astype(np.int64), points - 2)
    part = place - left
    part = part * part * (3 - 2 * part)
    weight = np.zeros((length, points), dtype=np.float32)
    row = np.arange(length)
    weight[row, left] = 1 - part
    weight[row, left + 1] = part
    return weight


def _planks(rng: np.random.Generator, height: int, width: int) -> Pixels:
    """[h, w] parallel bands of different brightness, in any direction."""
    angle, period = rng.uniform(0, np.pi), rng.uniform(0.05, 0.3) * max(height, width)
    across = np.arange(width) * (np.cos(angle) / period) + 64
    down = np.arange(height) * (np.sin(angle) / period)
    tones = rng.normal(0, rng.uniform(5, 18), 128).astype(np.float32)
    band = down.astype(np.float32)[:, None] + across.astype(np.float32)
    planks: Pixels = tones[band.astype(np.int64) & 127]
    return planks


def _blurred(plane: Pixels, side: float) -> Pixels:
    """[h, w] each pixel mixed with its neighbours, weighted by `side`, down and then across."""
    kept, taken = np.float32(1 - 2 * side), np.float32(side)
    seen, moved = plane * kept, plane * taken
    seen[1:] += moved[:-1]
    seen[:-1] += moved[1:]
    seen[0] += moved[0]
    seen[-1] += moved[-1]
    np.multiply(seen, taken, out=moved)
    seen *= kept
    seen[:, 1:] += moved[:, :-1]
    seen[:, :-1] += moved[:, 1:]
    seen[:, 0] += moved[:, 0]
    seen[:, -1] += moved[:, -1]
    return seen


def _grain(rng: np.random.Generator, height: int, width: int) -> Pixels:
    """[3, h, w] unit noise, cut from a stock: drawing new noise would be the slowest step."""
    stock = _stock(-(-max(height, width) // _STOCK_SIDE))
    top = int(rng.integers(0, stock.shape[1] - height + 1))
    left = int(rng.integers(0, stock.shape[2] - width + 1))
    return stock[:, top : top + height, left : left + width]


@lru_cache(maxsize=1)
def _stock(times: int) -> Pixels:
    rng = np.random.default_rng(1)
    grey = rng.standard_normal((1, _STOCK_SIDE, _STOCK_SIDE), dtype=np.float32)
    colour = rng.standard_normal((3, _STOCK_SIDE, _STOCK_SIDE), dtype=np.float32)
    stock: Pixels = np.tile(
        (grey + np.float32(0.6) * colour) * np.float32(0.857), (1, times, times)
    )
    return stock
