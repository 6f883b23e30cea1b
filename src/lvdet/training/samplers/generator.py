"""Random numbers that depend on nothing but a seed and a place."""

from __future__ import annotations

import numpy as np

#: What random numbers are for: the first number of a place, so that no two uses share them.
EPOCH, CLASS, SAMPLE = range(3)


def generator(seed: int, *place: int) -> np.random.Generator:
    """Random numbers of a place, the same whenever and in whichever process they are drawn."""
    sequence = np.random.SeedSequence(seed % (1 << 64), spawn_key=place)
    return np.random.Generator(np.random.PCG64(sequence))
