"""The interface of samplers, and the endless stream of images over their epochs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError


class Sampler(Protocol):
    """Image rows in epochs. An epoch is a pure function of its number and the seed."""

    def size(self, number: int, seed: int) -> int:
        """The number of images in the epoch."""

    def epoch(self, number: int, seed: int) -> NDArray[np.int64]:
        """[size] image rows in the order they are seen."""


def stream(sampler: Sampler, seed: int, start: int = 0) -> Iterator[int]:
    """Image rows, epoch after epoch, from position `start` on; earlier ones are not drawn."""
    number = 0
    while (size := sampler.size(number, seed)) <= start:
        if not size:
            raise InputError("no image has an object to train on")
        start -= size
        number += 1
    while True:
        yield from sampler.epoch(number, seed)[start:].tolist()
        start = 0
        number += 1
