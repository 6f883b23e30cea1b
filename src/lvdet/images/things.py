"""The things in a picture: objects and distractors with their appearance, from front to back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.images.class_names import COLOURS, RIMS
from lvdet.images.outlines import OUTLINES
from lvdet.images.stencils import FILLS, SHAPELESS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Distractors per object, and the share of them outside the vocabulary.
_DISTRACTORS, _UNLISTED = 0.6, 0.35
#: Spread of the logarithm of the diameter: between classes, and between the objects of a class.
_BETWEEN, _WITHIN = 0.62, 0.18
#: Spread of the logarithm of the stretch, of the shear, and of hue, saturation and value.
_STRETCH, _SHEAR = 0.07, 0.08
_JITTER = (0.013, 0.08, 0.06)


@dataclass(frozen=True)
class Things:
    """N things, the first in front.

    row:      [N] the row of its object, -1 for a distractor
    stencil:  [N, 3] rim, fill and outline
    palette:  [3, N, 4] red, green and blue of each kind of stencil cell
    diameter: [N] in pixels
    inverse:  [N, 2, 2] the map from positions around the middle to the unit disc, for diameter 1
    tilt:     [N, 2] change of brightness along a radius, across and down
    """

    row: Ints
    stencil: Ints
    palette: Floats
    diameter: Floats
    inverse: Floats
    tilt: Floats


def draw_things(
    rng: np.random.Generator,
    category: Ints,
    attributes: Ints,
    unlisted: Ints,
    diameter: tuple[float, float, float],
) -> Things:
    """Draws the appearance of objects of the classes `category` [M], whose attributes are [M, 4],
    and of some distractors.

    unlisted: [U, 4] attribute combinations outside the vocabulary
    diameter: the smallest, the typical and the largest
    """
    objects = len(category)
    clutter = int(rng.poisson(_DISTRACTORS * objects + 2))
    total = objects + clutter
    looks = np.concatenate([attributes, _distractors(rng, clutter, unlisted)])
    # Objects of one class have similar sizes, and some images have smaller things throughout.
    group = np.unique(np.append(category, -1 - np.arange(clutter)), return_inverse=True)[1]
    scale = np.exp(rng.normal(0, 0.25) + rng.normal(0, _BETWEEN, total)[group])
    scale *= np.exp(rng.normal(0, _WITHIN, total))
    smallest, typical, largest = diameter
    order = rng.permutation(total)
    return Things(
        np.append(np.arange(objects), np.full(clutter, -1))[order],
        looks[order][:, [0, 1, 3]],
        _palettes(rng, looks[order, 2]),
        np.clip(typical * scale, smallest, largest)[order],
        _inverse_maps(rng, total),
        rng.normal(0, 0.13, (total, 2)),
    )


def _distractors(rng: np.random.Generator, number: int, unlisted: Ints) -> Ints:
    """[number, 4] attributes of distractors."""
    drawn = np.stack(
        [
            rng.integers(0, len(RIMS), number),
            rng.integers(0, len(FILLS), number),
            rng.integers(0, len(COLOURS), number),
            len(OUTLINES) + rng.integers(0, SHAPELESS, number),
        ],
        axis=1,
    )
    if len(unlisted):
        like_a_class = rng.random(number) < _UNLISTED
        other = unlisted[rng.integers(0, len(unlisted), number)]
        drawn = np.where(like_a_class[:, None], other, drawn)
    return drawn


def _palettes(rng: np.random.Generator, colour: Ints) -> Floats:
    """[3, N, 4] colours of the cells (empty, main, second, rim), varied around the class's."""
    number = len(colour)
    middle = np.array(list(COLOURS.values()))[colour]
    main = _rgb(middle + rng.normal(0, 1, (number, 3)) * _JITTER)
    # The second colour is a lighter or a darker one, whichever stands out.
    brightness = main.mean(axis=1)
    lighter = ((rng.random(number) < 0.5) & (brightness < 190)) | (brightness < 90)
    towards = np.where(lighter, rng.uniform(225, 255, number), rng.uniform(5, 40, number))
    second = main + (towards[:, None] - main) * rng.uniform(0.62, 0.85, (number, 1))
    edge = np.where(brightness > 75, 10.0, 240.0)[:, None]
    rim = main + (edge - main) * rng.uniform(0.7, 0.9, (number, 1))
    return np.stack([main, main, second, rim], axis=1).transpose(2, 0, 1)


def _rgb(hsv: Floats) -> Floats:
    """[N, 3] red, green and blue, 0–255."""
    hue, saturation, value = hsv[:, :1], np.clip(hsv[:, 1:2], 0, 1), np.clip(hsv[:, 2:], 0, 1)
    place = (np.array([5.0, 3.0, 1.0]) + hue * 6) % 6
    ramp = np.clip(np.minimum(place, 4 - place), 0, 1)
    rgb: Floats = 255 * value * (1 - saturation * ramp)
    return rgb


def _inverse_maps(rng: np.random.Generator, number: int) -> Floats:
    """[N, 2, 2] the inverses of a stretch, a shear and then a rotation."""
    turn = rng.uniform(0, 2 * np.pi, number)
    stretch = np.exp(rng.normal(0, _STRETCH, number))
    cos, sin = np.cos(turn), np.sin(turn)
    back = np.stack([np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)], axis=1)
    undo = np.zeros((number, 2, 2))
    undo[:, 0, 0], undo[:, 0, 1] = stretch, rng.normal(0, _SHEAR, number)
    undo[:, 1, 1] = 1 / stretch
    inverse: Floats = 2 * undo @ back
    return inverse
