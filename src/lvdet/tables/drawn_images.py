"""The images on which other readings of a results file are tried."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SEED = 0
#: Of so many images files are read with all boxes, whatever their class.
WITH_BOXES = 200


def drawn_images(images: int) -> NDArray[np.int64]:
    """All rows of the images in an order drawn from a fixed seed: the first are looked at."""
    return np.random.default_rng(_SEED).permutation(images)
