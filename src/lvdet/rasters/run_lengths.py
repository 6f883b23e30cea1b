"""COCO's run lengths: pixels to runs, runs to strings, and back.

The runs of a mask go down its columns, from the left one to the right one; they are of zeros and
ones in turn, beginning with zeros, so that the first run may have no pixels.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError

#: Characters a number may have: 7 of 5 bits hold any difference of two uint32.
LONGEST = 7


def encode(counts: NDArray[Any], offsets: NDArray[Any]) -> list[str]:
    """The compressed strings of N masks, as pycocotools writes them.

    counts:  uint32[M] the runs of all masks
    offsets: int64[N + 1]; the runs of mask i are counts[offsets[i]:offsets[i + 1]]
    """
    if len(offsets) < 2:
        return []
    begin = int(offsets[0])
    value = np.asarray(counts[begin : int(offsets[-1])]).astype(np.int64)
    starts = np.asarray(offsets, dtype=np.int64) - begin
    number = np.arange(len(value)) - np.repeat(starts[:-1], np.diff(starts))
    later = np.flatnonzero(number > 2)
    earlier = value[later - 2]  # all are read before the first is changed
    value[later] -= earlier

    size = np.ones(len(value), dtype=np.int64)
    for place in range(1, LONGEST):
        half = np.int64(1) << (5 * place - 1)
        size += (value < -half) | (value >= half)
    ends = np.concatenate(([0], np.cumsum(size)))
    text = np.empty(int(ends[-1]), dtype=np.uint8)
    rows = np.arange(len(value))
    for place in range(LONGEST):
        rows = rows[size[rows] > place]
        if not len(rows):
            break
        digit = (value[rows] >> (5 * place)) & 31
        text[ends[rows] + place] = 48 + digit + 32 * (size[rows] > place + 1)
    whole = text.tobytes().decode("ascii")
    cuts = ends[starts].tolist()
    return [whole[a:b] for a, b in pairwise(cuts)]


def decode(text: str | bytes) -> NDArray[np.int64]:
    """The runs, int64[runs], that a compressed string stands for."""
    try:
        raw = text.encode("ascii") if isinstance(text, str) else text
    except UnicodeEncodeError:
        raise InputError("run lengths have a character that is none of theirs") from None
    code = np.frombuffer(raw, dtype=np.uint8).astype(np.int64) - 48
    if not len(code):
        return np.zeros(0, dtype=np.int64)
    if code.min() < 0 or code.max() > 63:
        raise InputError("run lengths have a character that is none of theirs")
    last = np.flatnonzero(code < 32)
    if not len(last) or last[-1] != len(code) - 1:
        raise InputError("run lengths end within a number")
    first = np.concatenate(([0], last[:-1] + 1))
    size = last - first + 1
    if size.max() > LONGEST:
        raise InputError(f"run lengths have a number of more than {LONGEST} characters")
    place = np.arange(len(code)) - np.repeat(first, size)
    value = np.add.reduceat((code & 31) << (5 * place), first)
    value -= np.where(code[last] & 16, np.int64(1) << (5 * size), 0)
    value[1::2] = np.cumsum(value[1::2])
    value[2::2] = np.cumsum(value[2::2])
    if value.min() < 0:
        raise InputError("run lengths have a run below 0")
    return value


def pixels(counts: NDArray[Any], height: int, width: int) -> NDArray[np.bool_]:
    """bool[height, width], True inside the mask."""
    total = int(np.sum(counts, dtype=np.int64))
    if total != height * width:
        raise InputError(
            f"run lengths have {total} pixels, expected {height} x {width} = {height * width}"
        )
    inside = np.zeros(len(counts), dtype=np.bool_)
    inside[1::2] = True
    return np.repeat(inside, counts).reshape(width, height).T


def runs(pixels: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """uint32[runs] of bool[h, w]."""
    flat = pixels.ravel(order="F")
    changes = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    inside = bool(len(flat) and flat[0])
    edges = np.concatenate((np.zeros(1 + inside, dtype=np.int64), changes, [len(flat)]))
    return np.diff(edges).astype(np.uint32)


def bounds(counts: NDArray[Any], height: int) -> tuple[int, int, int, int] | None:
    """x0, y0, x1, y1 in whole pixels around the mask, the last two exclusive; None: no pixels."""
    ends = np.cumsum(counts, dtype=np.int64)
    first, last = ends[:-1:2], ends[1::2] - 1  # pixels of each run of ones
    some = last >= first
    first, last = first[some], last[some]
    if not len(first):
        return None
    left, right = int(first[0]) // height, int(last[-1]) // height + 1
    if np.any(first // height != last // height):
        return left, 0, right, height
    return left, int((first % height).min()), right, int((last % height).max()) + 1


def columns(counts: NDArray[Any], height: int, begin: int, end: int) -> NDArray[np.bool_]:
    """bool[height, end - begin], the mask's columns from `begin` until before `end`."""
    edges = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    edges = np.clip(edges, begin * height, end * height)
    inside = np.zeros(len(counts), dtype=np.bool_)
    inside[1::2] = True
    return np.repeat(inside, np.diff(edges)).reshape(end - begin, height).T
