"""One picture: objects and distractors on a background, with full ground truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lvdet.images.backdrop import background, expose
from lvdet.images.class_names import Vocabulary
from lvdet.images.collage import Collage
from lvdet.images.federation import draw_labels
from lvdet.images.things import Floats, Ints, draw_things

#: Height and width for a longer side of 1, and how often each shape occurs.
_FORMATS = np.array([(0.75, 1), (1, 0.75), (0.667, 1), (1, 0.667), (1, 1), (0.5625, 1)])
_FORMAT_SHARE = np.array([0.42, 0.18, 0.2, 0.1, 0.06, 0.04])
#: The smallest, the typical and the largest diameter for a longer side of 1 and a dozen objects.
_DIAMETERS = (0.034, 0.18, 0.65)
#: The smallest diameter in small pictures, in pixels.
_SMALLEST = 8.0


@dataclass(frozen=True)
class World:
    """What all pictures of a set have in common.

    share:     [K] cumulative frequencies of the classes; ends with 1
    size:      the longer side in pixels
    objects:   mean number of labelled objects per image
    instances: mean number of objects of a class in an image that shows the class
    """

    vocabulary: Vocabulary
    share: Floats
    size: int
    objects: float
    instances: float

    @cached_property
    def unlisted(self) -> Ints:
        """[U, 4] attribute combinations outside the vocabulary."""
        return self.vocabulary.unlisted()

    @cached_property
    def diameters(self) -> tuple[float, float, float]:
        """The smallest, the typical and the largest, in pixels."""
        smallest, typical, largest = (self.size * part for part in _DIAMETERS)
        typical *= min(1.0, (12 / self.objects) ** 0.5)
        return max(smallest, _SMALLEST), typical, largest


@dataclass(frozen=True)
class Scene:
    """A picture and its ground truth. Classes are rows of the vocabulary.

    pixels:    uint8 [h, w, 3]
    owner:     int16 [h, w] the object that is visible at each pixel, -1 if none
    category:  [N] the classes of the objects in the picture, each with a visible pixel
    annotated: [N] whether the object is labelled
    negative, not_exhaustive: classes, ascending
    """

    pixels: NDArray[np.uint8]
    owner: NDArray[np.int16]
    category: Ints
    annotated: NDArray[np.bool_]
    negative: Ints
    not_exhaustive: Ints


def compose(rng: np.random.Generator, positive: Ints, world: World) -> Scene:
    """A picture that shows each of the classes `positive`, and some others without labels."""
    labels = draw_labels(rng, positive, world.share, world.instances)
    shape = _FORMATS[rng.choice(len(_FORMATS), p=_FORMAT_SHARE)]
    height, width = np.rint(shape * world.size).astype(np.int64).tolist()
    things = draw_things(
        rng,
        labels.category,
        world.vocabulary.attributes[labels.category],
        world.unlisted,
        world.diameters,
    )
    collage = Collage(height, width)
    essential = np.append(labels.first, False)[things.row]  # -1, a distractor, indexes the last
    collage.lay(rng, things, essential.tolist(), world.diameters[0])
    pixels = background(rng, height, width)
    collage.paint(things, pixels)

    row = things.row[np.array(collage.laid, dtype=np.int64)]
    number = np.full(len(row) + 1, -1, dtype=np.int16)
    number[1:][row >= 0] = np.arange(np.count_nonzero(row >= 0))
    row = row[row >= 0]
    return Scene(
        expose(rng, pixels),
        number.take(collage.ink >> 2),
        labels.category[row],
        labels.annotated[row],
        labels.negative,
        np.intersect1d(labels.not_exhaustive, labels.category[row[labels.annotated[row]]]),
    )
