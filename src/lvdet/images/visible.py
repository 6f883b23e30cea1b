"""From a map of which object is visible at each pixel to masks, boxes and areas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Visible:
    """The visible parts of N objects.

    counts, offsets: the runs of object i, in COCO's order, are counts[offsets[i]:offsets[i + 1]]
    box:   [N, 4] the tight x, y, width and height in whole pixels
    area:  [N] pixels
    """

    counts: NDArray[np.uint32]
    offsets: Ints
    box: Ints
    area: Ints


def visible_parts(owner: NDArray[np.int16], objects: int) -> Visible:
    """The parts of objects 0..N-1, each with a pixel at least, from [h, w] whose each pixel is
    (negative: nobody's)."""
    height, width = owner.shape
    flat = owner.T.ravel()
    start = np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]) + 1])
    stop = np.append(start[1:], height * width)
    whose = flat[start]
    order = np.argsort(whose, kind="stable")[np.count_nonzero(whose < 0) :]
    start, stop, whose = start[order], stop[order], whose[order]
    first = np.searchsorted(whose, np.arange(objects))
    stretches = np.diff(np.append(first, len(whose)))

    before = np.concatenate([[0], stop[:-1]])
    before[first] = 0
    rest = height * width - stop[first + stretches - 1]
    # Each stretch is two runs, the zeros before and the ones; then come the last zeros, if any.
    runs = 2 * stretches + (rest > 0)
    offsets = np.concatenate([[0], np.cumsum(runs)])
    place = 2 * np.arange(len(whose)) + np.repeat(offsets[:-1] - 2 * first, stretches)
    counts = np.empty(offsets[-1], dtype=np.uint32)
    counts[place] = start - before
    counts[place + 1] = stop - start
    counts[offsets[1:][rest > 0] - 1] = rest[rest > 0]

    return (
        Visible(
            counts,
            offsets,
            _boxes(start, stop, first, height),
            np.add.reduceat(stop - start, first),
        )
        if objects
        else Visible(counts, offsets, np.zeros((0, 4), np.int64), np.zeros(0, np.int64))
    )


def _boxes(start: Ints, stop: Ints, first: Ints, height: int) -> Ints:
    """[N, 4] from the stretches of flat columns; one over a column's end has its whole height."""
    left, top = np.divmod(start, height)
    right, bottom = np.divmod(stop - 1, height)
    over = right > left
    top, bottom = np.where(over, 0, top), np.where(over, height - 1, bottom)
    x, y = np.minimum.reduceat(left, first), np.minimum.reduceat(top, first)
    return np.stack(
        [
            x,
            y,
            np.maximum.reduceat(right, first) + 1 - x,
            np.maximum.reduceat(bottom, first) + 1 - y,
        ],
        axis=1,
    )
