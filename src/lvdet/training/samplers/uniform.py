"""Every image once an epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.training.samplers.generator import EPOCH, generator


@dataclass(frozen=True)
class Uniform:
    """Every image once an epoch, reshuffled each time.

    rows: [R] the image rows to draw from
    """

    rows: NDArray[np.int64]

    def size(self, number: int, seed: int) -> int:
        return len(self.rows)

    def epoch(self, number: int, seed: int) -> NDArray[np.int64]:
        return generator(seed, EPOCH, number).permutation(self.rows)
