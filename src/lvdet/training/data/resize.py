"""The size to which an image is resized."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lvdet.errors import InputError
from lvdet.training.configuration import config


def draw_size(options: config.Input, random: np.random.Generator) -> int:
    """The size of one training sample: one of the given sizes, or any size between the two."""
    if options.between:
        return int(random.integers(min(options.sizes), max(options.sizes) + 1))
    return options.sizes[int(random.integers(len(options.sizes)))]


def prediction_size(options: config.Input) -> int:
    """The size for prediction."""
    return options.test_size or max(options.sizes)


def prediction_input(options: config.Input) -> config.Input:
    """The resizing options for prediction."""
    return replace(options, by=options.test_by or options.by)


def resized(height: int, width: int, size: int, options: config.Input) -> tuple[int, int]:
    """Height and width of an image once its shortest or longest side is `size`.

    By the shortest, the longest side is kept within `largest`. Halves are rounded up; no side is
    less than 1.
    """
    shortest, longest = min(height, width), max(height, width)
    if options.by == "longest":
        ratio = size, longest
    elif options.by == "shortest":
        within = size * longest <= options.largest * shortest
        ratio = (size, shortest) if within else (options.largest, longest)
    else:
        raise InputError(f"input.by is '{options.by}', expected shortest or longest")
    up, down = ratio
    return (
        max(1, math.floor(height * up / down + 0.5)),
        max(1, math.floor(width * up / down + 0.5)),
    )
