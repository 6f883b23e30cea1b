"""The images on which alternative readings of a results file are tried."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: The number of images for which files are read with all boxes, whatever their class.
WITH_BOXES = 200


def drawn_images(images: int) -> NDArray[np.int64]:
    """All image rows in a fixed pseudo-random order; the first ones are used.

    By the values of SplitMix64. Importing numpy.random would take as long as evaluating a small
    file.
    """
    state = np.arange(1, images + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return np.argsort(state ^ (state >> np.uint64(31)), kind="stable")
