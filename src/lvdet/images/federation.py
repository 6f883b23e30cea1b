"""What is known about an image: LVIS's federated labels.

Each image has classes that were looked for and found (positive: all their objects are labelled,
or only some where the class is not exhaustive) and classes that were looked for and are not there
(negative). Of all others nothing is known; their objects may be in the picture, without a label.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

#: Unlabelled classes for each positive one, and negative classes per image, on average.
_UNVERIFIED = 0.15
_NEGATIVES = 10.0
#: How often a class with `_MANY` objects or more is not exhaustive.
_NOT_EXHAUSTIVE = 0.4
_MANY = 3


@dataclass(frozen=True)
class Labels:
    """Classes are rows of the vocabulary.

    category:   [N] the class of every object that shall be in the picture
    annotated:  [N] whether the object is labelled
    first:      [N] whether it is the first labelled one of its class: never left out
    negative, not_exhaustive: classes, ascending
    """

    category: Ints
    annotated: NDArray[np.bool_]
    first: NDArray[np.bool_]
    negative: Ints
    not_exhaustive: Ints


def draw_labels(
    rng: np.random.Generator, positive: Ints, share: NDArray[np.float64], instances: float
) -> Labels:
    """The objects of an image that shows the classes `positive`.

    `share` [K] cumulates how often the classes occur and ends with 1; `instances` is the mean
    number of objects of a class.
    """
    classes, found = len(share), len(positive)
    labelled = rng.geometric(1 / instances, found)
    partly = (labelled >= _MANY) & (rng.random(found) < _NOT_EXHAUSTIVE)
    missed = np.where(partly, rng.integers(1, _MANY + 1, found), 0)
    unverified = np.setdiff1d(
        _by_share(rng, share, int(rng.poisson(_UNVERIFIED * found))), positive
    )
    alone = rng.geometric(1 / instances, len(unverified))
    category = np.concatenate([positive, positive, unverified])
    number = np.concatenate([labelled, missed, alone])
    start = np.cumsum(labelled) - labelled
    first = np.zeros(number.sum(), dtype=np.bool_)
    first[start] = True
    # Half by frequency, so that frequent classes have enough negatives, and half uniformly.
    wanted = int(rng.poisson(min(_NEGATIVES, 0.4 * classes)))
    looked_for = np.concatenate(
        [_by_share(rng, share, wanted - wanted // 2), rng.integers(0, classes, wanted // 2)]
    )
    return Labels(
        np.repeat(category, number),
        np.arange(number.sum()) < labelled.sum(),
        first,
        np.setdiff1d(looked_for, category),
        positive[partly],
    )


def _by_share(rng: np.random.Generator, share: NDArray[np.float64], number: int) -> Ints:
    return np.searchsorted(share, rng.random(number), side="right").astype(np.int64)
