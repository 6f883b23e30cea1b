"""The outlines of things: closed loops of points within the unit disc, y pointing down.

A thing is what lies inside an odd number of its loops.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Loops = list[Floats]

_TURN = 2 * np.pi


def _polar(radius: Callable[[Floats], Floats], points: int = 72) -> Floats:
    """A loop whose radius is a function of the angle, 0 pointing up."""
    angle = np.linspace(0, _TURN, points, endpoint=False)
    along = radius(angle)
    return np.stack([along * np.sin(angle), -along * np.cos(angle)], axis=1)


def _regular(corners: int) -> Loops:
    return [_polar(np.ones_like, corners)]


def _spikes(number: int, inner: float) -> Loops:
    """A star: corners at radius 1 and `inner` by turns."""
    return [_polar(lambda a: np.where(np.arange(len(a)) % 2 == 0, 1.0, inner), 2 * number)]


def _points(*numbers: float) -> Loops:
    """One loop from x, y, x, y, ..., brought into the unit disc."""
    loop = np.array(numbers, dtype=np.float64).reshape(-1, 2)
    loop = loop - (loop.min(axis=0) + loop.max(axis=0)) / 2
    return [loop / np.hypot(*loop.T).max()]


def _mirrored(*numbers: float) -> Loops:
    """One loop of which the right half is given, from top to bottom."""
    half = np.array(numbers, dtype=np.float64).reshape(-1, 2)
    return _points(*np.concatenate([half, half[::-1] * [-1, 1]]).ravel())


def _heart() -> Loops:
    t = np.linspace(0, _TURN, 60, endpoint=False)
    x = 16 * np.sin(t) ** 3
    y = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return _points(*np.stack([x, -y], axis=1).ravel())


def _crescent() -> Loops:
    outer = np.linspace(0.16, 0.84, 44) * _TURN
    inner = np.linspace(0.79, 0.21, 32) * _TURN
    near = np.stack([np.cos(outer), np.sin(outer)], axis=1)
    far = np.stack([0.35 + 0.72 * np.cos(inner), 0.72 * np.sin(inner)], axis=1)
    return _points(*np.concatenate([near, far]).ravel())


def _drop() -> Loops:
    t = np.linspace(0, _TURN, 60, endpoint=False)
    return _points(*np.stack([np.sin(t) * np.sin(t / 2) ** 1.6, -np.cos(t)], axis=1).ravel())


def _dome() -> Loops:
    t = np.linspace(-0.25, 0.25, 32) * _TURN
    return _points(*np.stack([np.sin(t), -np.cos(t)], axis=1).ravel())


def _leaf() -> Loops:
    t = np.linspace(-1, 1, 30)
    side = 0.46 * (1 - t**2)
    right, left = np.stack([side, t], axis=1), np.stack([-side, t], axis=1)[::-1]
    return _points(*np.concatenate([right, left[1:-1]]).ravel())


def _fish() -> Loops:
    t = np.linspace(0.08, 0.92, 44) * _TURN
    body = np.stack([0.62 * np.cos(t) - 0.25, 0.48 * np.sin(t)], axis=1)
    return _points(*body.ravel(), 0.85, -0.5, 0.66, 0.0, 0.85, 0.5)


def _mushroom() -> Loops:
    t = np.linspace(-0.25, 0.25, 28) * _TURN
    cap = np.stack([np.sin(t), -np.cos(t)], axis=1)
    return _points(*cap.ravel(), 0.28, 0.0, 0.34, 0.85, -0.34, 0.85, -0.28, 0.0)


def _gear() -> Loops:
    teeth = np.repeat(np.tile([1.0, 0.74], 8), 2)
    angle = (np.arange(32) // 2 + np.tile([-0.36, 0.36], 16)) * _TURN / 16
    outer = np.stack([teeth * np.sin(angle), -teeth * np.cos(angle)], axis=1)
    return [outer, _polar(lambda a: np.full_like(a, 0.3), 24)]


#: The outlines of the classes.
OUTLINES: dict[str, Loops] = {
    "disc": [_polar(np.ones_like)],
    "triangle": _regular(3),
    "square": _regular(4),
    "pentagon": _regular(5),
    "hexagon": _regular(6),
    "bar": _mirrored(0.32, -1, 0.32, 1),
    "diamond": _mirrored(0.0, -1, 0.55, 0, 0.0, 1),
    "star": _spikes(5, 0.42),
    "spark": _spikes(4, 0.32),
    "sun": _spikes(12, 0.66),
    "cross": _mirrored(0.3, -1, 0.3, -0.3, 1, -0.3, 1, 0.3, 0.3, 0.3, 0.3, 1),
    "heart": _heart(),
    "crescent": _crescent(),
    "ring": [_polar(np.ones_like), _polar(lambda a: np.full_like(a, 0.55), 48)],
    "drop": _drop(),
    "arrow": _mirrored(0.0, -1, 0.75, -0.1, 0.28, -0.1, 0.28, 1),
    "gear": _gear(),
    "flower": [_polar(lambda a: 0.72 + 0.28 * np.cos(5 * a), 90)],
    "clover": [_polar(lambda a: 0.62 + 0.38 * np.cos(3 * a), 90)],
    "dome": _dome(),
    "elbow": _points(-1, -1, -0.35, -1, -0.35, 0.35, 0.8, 0.35, 0.8, 1, -1, 1),
    "tee": _mirrored(0.9, -1, 0.9, -0.4, 0.3, -0.4, 0.3, 1),
    "hourglass": _mirrored(0.75, -1, 0.14, 0, 0.75, 1),
    "bolt": _points(0.2, -1, -0.6, 0.15, -0.08, 0.15, -0.3, 1, 0.6, -0.25, 0.06, -0.25, 0.5, -1),
    "fish": _fish(),
    "house": _mirrored(0.0, -1, 0.85, -0.2, 0.65, -0.2, 0.65, 0.9),
    "mushroom": _mushroom(),
    "crown": _points(-1, -0.7, -0.5, 0, 0, -0.9, 0.5, 0, 1, -0.7, 0.8, 0.8, -0.8, 0.8),
    "leaf": _leaf(),
    "bottle": _mirrored(0.2, -1, 0.2, -0.45, 0.48, -0.1, 0.48, 1),
}


def shapeless(number: int) -> list[Loops]:
    """Outlines that belong to no class, always the same: lumps, shards and threads."""
    rng = np.random.default_rng(number)
    return [(_lump, _shard, _thread)[index % 3](rng) for index in range(number)]


def _lump(rng: np.random.Generator) -> Loops:
    order = np.arange(1, 6)
    height = rng.normal(0, 0.34, 5) / order
    phase = rng.uniform(0, _TURN, 5)

    def radius(angle: Floats) -> Floats:
        wave: Floats = (height * np.cos(angle[:, None] * order + phase)).sum(axis=1)
        return np.clip(0.7 + wave, 0.15, 1.0)

    return [_polar(radius)]


def _shard(rng: np.random.Generator) -> Loops:
    corners = int(rng.integers(4, 9))
    angle = np.sort(rng.uniform(0, _TURN, corners))
    radius = rng.uniform(0.3, 1.0, corners)
    return _points(*np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel())


def _thread(rng: np.random.Generator) -> Loops:
    along = np.linspace(-1, 1, 24)
    bend = sum(rng.normal(0, 0.22) * np.sin((k + 1) * along + rng.uniform(0, 6)) for k in range(3))
    wide = rng.uniform(0.03, 0.1)
    upper, lower = np.stack([along, bend - wide], 1), np.stack([along, bend + wide], 1)[::-1]
    return _points(*np.concatenate([upper, lower]).ravel())
