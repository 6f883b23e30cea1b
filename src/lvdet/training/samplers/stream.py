"""The endless stream of images over a sampler's epochs."""

from __future__ import annotations

from collections.abc import Iterator

from lvdet.errors import InputError
from lvdet.training.samplers.sampler import Sampler


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
