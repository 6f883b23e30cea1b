"""Random numbers that depend only on a seed and a position."""

from __future__ import annotations

import numpy as np

#: What random numbers are for: the first number of a place, so that no two uses share them.
EPOCH, CLASS, SAMPLE = range(3)


def generator(seed: int, *place: int) -> np.random.Generator:
    """The random generator of a position, the same in every process and at any time."""
    sequence = np.random.SeedSequence(seed % (1 << 64), spawn_key=place)
    return np.random.Generator(np.random.PCG64(sequence))
