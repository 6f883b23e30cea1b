"""Repeat factor sampling (RFS): images of rare classes several times an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.training.samplers.generator import EPOCH, generator


def repeat_factors(
    image_classes: Sequence[NDArray[Any]], images: int, threshold: float
) -> NDArray[np.float64]:
    """[I] how often each image is seen in an epoch, on average.

    image_classes: for each of I images, the rows of the classes that it has
    images: how many images the frequencies are fractions of

    A class in a fraction f of the images has max(1, sqrt(threshold / f)), an image the largest
    of its classes' factors, and 1 without classes.
    """
    sizes = np.array([len(of_image) for of_image in image_classes], dtype=np.int64)
    factors = np.ones(len(sizes))
    if not sizes.sum():
        return factors
    classes = np.concatenate(list(image_classes)).astype(np.int64)
    fraction = np.bincount(classes) / images
    with np.errstate(
        divide="ignore", invalid="ignore"
    ):  # classes without images are requested by none
        of_class = np.maximum(1.0, np.sqrt(threshold / fraction))
    some = np.flatnonzero(sizes)
    first = (np.cumsum(sizes) - sizes)[some]
    factors[some] = np.maximum.reduceat(of_class[classes], first)
    return factors


@dataclass(frozen=True)
class RepeatFactor:
    """Every image as often as its factor says, the fraction rounded at random in each epoch.

    rows:    [R] the image rows to draw from
    factors: [R] how often each is seen on average, at least 1
    """

    rows: NDArray[np.int64]
    factors: NDArray[np.float64]

    def size(self, number: int, seed: int) -> int:
        return int(self._times(generator(seed, EPOCH, number)).sum())

    def epoch(self, number: int, seed: int) -> NDArray[np.int64]:
        random = generator(seed, EPOCH, number)
        return random.permutation(np.repeat(self.rows, self._times(random)))

    def _times(self, random: np.random.Generator) -> NDArray[np.int64]:
        whole = np.floor(self.factors)
        up = random.random(len(self.factors)) < self.factors - whole
        return whole.astype(np.int64) + up
