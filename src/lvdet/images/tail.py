"""The long tail: how many images each class is in, and which."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.categories import FREQUENCIES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Mean number of a class's objects in an image that shows it, where there are classes enough.
INSTANCES = 1.3
#: Images of the rarest class, before rounding; the largest share of the images a class has; and
#: how fast the counts may fall from a class to the next, as a logarithm.
_LAST = 1.6
_LARGEST_SHARE = 0.6
_STEEPEST = 0.5
#: The share of classes that are in some validation image whatever their frequency. LVIS v1 val
#: has 86 % of the classes.
_IN_VALIDATION = 0.9
#: How unevenly images are filled.
_UNEVEN = 0.3


def expected_images(classes: int, images: int, cells: float, rarest: float | None = None) -> Floats:
    """[K] images by rank of the class, the most frequent first, together about `cells`.

    The counts fall as an exponential of the rank, which is how those of LVIS v1 fall (about 2,000
    images for the first of 1,203, 100 for the 405th, 10 for the 866th), to the same rarest class
    however large the set is, unless another `rarest` is requested.
    """
    behind = np.arange(classes - 1, -1, -1, dtype=np.float64)
    most = max(_LARGEST_SHARE * images, 1.0)
    rarest = min(_LAST if rarest is None else rarest, most)

    def counts(last: float, slope: float) -> Floats:
        return np.minimum(last * np.exp(slope * behind), most)

    slope = _smallest(lambda slope: counts(rarest, slope).sum() >= cells, 0.0, _STEEPEST)
    # A few classes cannot fill the images that way: then the rarest is less rare.
    last = _smallest(lambda last: counts(last, slope).sum() >= cells, rarest, most)
    return counts(last, slope)


def _smallest(enough: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number between the two that is enough, or the higher one."""
    if enough(low):
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def training_counts(rng: np.random.Generator, expected: Floats, images: int) -> Ints:
    """[K] whole numbers of images, at least 1."""
    whole = np.floor(expected + rng.random(len(expected))).astype(np.int64)
    return np.clip(whole, 1, images)


def validation_counts(
    rng: np.random.Generator, expected: Floats, training: int, images: int, cells: float
) -> Ints:
    """[K] images of each class in validation: the same tail, but most classes are in one, where
    there is room for that."""
    classes = len(expected)
    whole = np.floor(expected * (images / training) + rng.random(classes)).astype(np.int64)
    floor = rng.random(classes) < min(_IN_VALIDATION, 0.5 * cells / classes)
    return np.clip(np.maximum(whole, floor), 0, images)


def scatter(rng: np.random.Generator, counts: Ints, images: int) -> tuple[Ints, Ints]:
    """Which images show each class, `counts[c]` different ones for class c.

    Returns (offsets [images + 1], classes [cells]): those of image i, ascending, are
    classes[offsets[i]:offsets[i + 1]].
    """
    pull = np.exp(rng.normal(0, _UNEVEN, images))
    cells = []
    for category, count in enumerate(counts.tolist()):
        if count:
            key = rng.standard_exponential(images) / pull
            chosen = np.argpartition(key, count - 1)[:count]
            cells.append(chosen * len(counts) + category)
    image, classes = np.divmod(np.sort(np.concatenate(cells)), len(counts))
    offsets = np.searchsorted(image, np.arange(images + 1))
    return offsets.astype(np.int64), classes


def frequency_letters(image_count: Ints) -> list[str]:
    """LVIS's groups by training images: rare up to 10, common up to 100, frequent above."""
    return [FREQUENCIES[place] for place in np.digitize(image_count, [11, 101]).tolist()]
