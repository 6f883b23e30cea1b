"""Class-aware sampling (CAS): every class equally often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.training.samplers.generator import CLASS, EPOCH, generator


class ClassAware:
    """One image of every class that has any, the classes reshuffled in each epoch.

    A class of n images gives them in an order of its own, redrawn once all have been given: in
    epoch e it gives number e % n of its order number e // n.
    """

    def __init__(self, rows: NDArray[np.int64], image_classes: Sequence[NDArray[Any]]) -> None:
        """rows: [R] the image rows to draw from; image_classes: for each of them, the rows of the
        classes that it has."""
        sizes = [len(of_image) for of_image in image_classes]
        pairs = np.repeat(np.asarray(rows, dtype=np.int64), sizes)
        classes = np.concatenate([np.zeros(0, dtype=np.int64), *image_classes]).astype(np.int64)
        order = np.argsort(classes, kind="stable")
        self._images = pairs[order]
        self._classes, first = np.unique(classes[order], return_index=True)
        self._first = np.append(first, len(order))
        # The current orders: redrawing those of frequent classes in each epoch is slow.
        self._orders: dict[int, tuple[tuple[int, int], NDArray[np.int64]]] = {}

    def size(self, number: int, seed: int) -> int:
        return len(self._classes)

    def epoch(self, number: int, seed: int) -> NDArray[np.int64]:
        given = np.array([self._image(place, number, seed) for place in range(len(self._classes))])
        return generator(seed, EPOCH, number).permutation(given.astype(np.int64))

    def _image(self, place: int, number: int, seed: int) -> int:
        images = self._images[self._first[place] : self._first[place + 1]]
        if len(images) == 1:
            return int(images[0])
        key = (seed, number // len(images))
        known, order = self._orders.get(place, (None, images))
        if known != key:
            random = generator(seed, CLASS, int(self._classes[place]), key[1])
            order = random.permutation(images)
            self._orders[place] = (key, order)
        return int(order[number % len(images)])
