"""What all samplers can do."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Sampler(Protocol):
    """Image rows in epochs. An epoch is a pure function of its number and the seed."""

    def size(self, number: int, seed: int) -> int:
        """How many images the epoch has."""

    def epoch(self, number: int, seed: int) -> NDArray[np.int64]:
        """[size] image rows in the order in which they are seen."""
