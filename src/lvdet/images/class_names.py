"""Classes as combinations of attributes: an optional rim, a fill, a colour and an outline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.images.outlines import OUTLINES
from lvdet.images.stencils import FILLS

#: Hue, saturation and value around which the colour of an object lies.
COLOURS = {
    "red": (0.985, 0.82, 0.78),
    "orange": (0.072, 0.88, 0.95),
    "yellow": (0.150, 0.82, 0.95),
    "green": (0.340, 0.68, 0.55),
    "teal": (0.490, 0.72, 0.68),
    "blue": (0.605, 0.78, 0.75),
    "violet": (0.755, 0.55, 0.62),
    "pink": (0.915, 0.42, 0.95),
    "brown": (0.065, 0.62, 0.38),
    "grey": (0.600, 0.04, 0.55),
    "white": (0.120, 0.04, 0.95),
    "black": (0.650, 0.12, 0.13),
}
RIMS = ("", "rimmed")

_SIZES = (len(RIMS), len(FILLS), len(COLOURS), len(OUTLINES))
#: How many different things can be drawn.
COMBINATIONS = int(np.prod(_SIZES))


@dataclass(frozen=True)
class Vocabulary:
    """[K, 4] the rim, fill, colour and outline of each class, all different."""

    attributes: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.attributes)

    def names(self) -> list[str]:
        """Names that describe the combination: "red star", "rimmed striped red star"."""
        fills = ["" if fill == "plain" else fill for fill in FILLS]
        words = (RIMS, fills, list(COLOURS), list(OUTLINES))
        return [
            " ".join(filter(None, (word[at] for word, at in zip(words, row, strict=True))))
            for row in self.attributes.tolist()
        ]

    def unlisted(self) -> NDArray[np.int64]:
        """[M, 4] the combinations that belong to no class."""
        used = np.ravel_multi_index(tuple(self.attributes.T), _SIZES)
        free = np.setdiff1d(np.arange(COMBINATIONS), used)
        return _attributes(free)


def draw_vocabulary(rng: np.random.Generator, classes: int) -> Vocabulary:
    """Classes drawn from all combinations, so that most share parts with many others."""
    return Vocabulary(_attributes(np.sort(rng.choice(COMBINATIONS, classes, replace=False))))


def _attributes(combination: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack(np.unravel_index(combination, _SIZES), axis=1).astype(np.int64)
