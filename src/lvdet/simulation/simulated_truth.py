"""Simulated ground truth: a long tail of classes over images, with LVIS's or COCO's lists."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.simulation.ellipses import ellipses
from lvdet.tables.categories import Categories
from lvdet.tables.ground_truth import GroundTruth, ImageLists, Images

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Shares of LVIS v1's 1,203 classes: frequent, then common, the rest rare.
_FREQUENT, _COMMON = 405 / 1203, 461 / 1203
#: Width and height of the images, and how often each shape comes.
_SHAPES = np.array(
    [(640, 480), (480, 640), (640, 427), (427, 640), (640, 640), (500, 375), (612, 612), (640, 360)]
)
_SHAPE_SHARE = np.array([0.36, 0.16, 0.20, 0.09, 0.05, 0.06, 0.04, 0.04])
_MOST_INSTANCES = 60
#: Negative classes per image, and the share of positive cells not annotated exhaustively.
_NEGATIVES = 10.0
_NOT_EXHAUSTIVE = 0.03
_CROWD_SHARE = 0.01
_SMALLEST_SIDE = 4.0


@dataclass(frozen=True)
class Lattice:
    """The grid all boxes lie on: `steps` to a pixel, `margin` pixels kept free at the far edges.

    Boxes are kept in whole steps (float64 arrays of whole numbers) until a table is made, so
    what holds of their overlaps still holds of the rounded numbers.
    """

    steps: int
    margin: int

    def limits(self, images: Images) -> Floats:
        """[I, 2] the largest x and y, in steps."""
        size = np.stack([images.width, images.height], axis=1) - self.margin
        return (size * self.steps).astype(np.float64)

    def place(self, size: Floats, fraction: Floats, limit: Floats) -> Floats:
        """[N, 4] boxes of [N, 2] `size` pixels at [N, 2] `fraction` of the room there is."""
        whole = np.rint(size * self.steps)
        whole = np.clip(whole, _SMALLEST_SIDE * self.steps, np.floor(0.95 * limit))
        return np.concatenate([np.floor(fraction * (limit - whole)), whole], axis=1)


def annotate(
    rng: np.random.Generator,
    images: int,
    classes: int,
    *,
    objects_per_image: float,
    federated: bool,
    masks: bool,
    lattice: Lattice,
    rank: Ints | None = None,
) -> tuple[GroundTruth, Ints]:
    """Ground truth sorted by image and class, and [C] the rank of each class, 0 for the most
    frequent; drawn at random if not given.

    Expected class frequencies follow a shifted Zipf law (a cube, which gives LVIS v1 val's
    mean numbers of boxes for rare and frequent classes); every class has at least one box.
    """
    table = _images(rng, images)
    rank = rng.permutation(classes) if rank is None else rank
    rarity = rarity_of(rank)
    cells, count = _positives(rng, images, rank, rarity, objects_per_image)
    cell = np.repeat(np.arange(len(cells)), count)
    image, category = np.divmod(cells[cell], classes)
    box = _boxes(rng, cell, count, lattice.limits(table)[image], lattice)
    crowd = np.zeros(len(cell), dtype=np.bool_)
    negative = not_exhaustive = None
    if federated:
        negative, not_exhaustive = _federated_lists(rng, cells, images, classes)
    else:
        crowd = rng.random(len(cell)) < _CROWD_SHARE
    pixels = box / lattice.steps
    area = np.round(pixels[:, 2] * pixels[:, 3], 2)
    shapes = None
    if masks:
        shapes, area = ellipses(pixels.astype(np.int64), table.height[image], table.width[image])
    truth = GroundTruth(
        table,
        _categories(rank, federated),
        np.arange(1, len(cell) + 1, dtype=np.int64),
        image.astype(np.int32),
        category.astype(np.int32),
        pixels,
        area,
        np.zeros(len(cell), dtype=np.bool_),
        crowd,
        shapes,
        negative,
        not_exhaustive,
        source="simulated annotations",
    )
    return truth, rank


def rarity_of(rank: Ints) -> Floats:
    """[C] how rare each class is, in [0, 1]."""
    return rank / max(len(rank) - 1, 1)


def highest_overlap(box: Floats, start: Ints, stop: Ints, others: Floats) -> Floats:
    """[N] highest IoU of each of [N, 4] boxes with `others[start:stop]`, 0 if that is empty."""
    count = stop - start
    filled = count > 0
    first = np.cumsum(count) - count
    other = others[np.arange(count.sum()) + np.repeat(start - first, count)]
    mine = np.repeat(box, count, axis=0)
    near = np.maximum(mine[:, :2], other[:, :2])
    far = np.minimum(mine[:, :2] + mine[:, 2:], other[:, :2] + other[:, 2:])
    shared = np.prod(np.maximum(far - near, 0.0), axis=1)
    iou = shared / (mine[:, 2] * mine[:, 3] + other[:, 2] * other[:, 3] - shared)
    best = np.zeros(len(box))
    best[filled] = np.maximum.reduceat(iou, first[filled]) if filled.any() else 0.0
    return best


def box_sizes(rng: np.random.Generator, scale: Floats) -> Floats:
    """[N, 2] widths and heights in pixels around [N] `scale`, from tiny to image-filling."""
    side = scale * np.exp(rng.normal(0.0, 0.25, len(scale)))
    aspect = np.exp(rng.normal(0.0, 0.35, len(scale)))
    return np.stack([side * aspect, side / aspect], axis=1)


def scene_scales(rng: np.random.Generator, number: int) -> Floats:
    """[number] typical object sides in pixels: about half the boxes come out small."""
    return np.exp(rng.normal(np.log(64.0), 0.95, number))


def _images(rng: np.random.Generator, number: int) -> Images:
    ids = np.cumsum(rng.integers(1, 60, number)).astype(np.int64)
    shape = _SHAPES[rng.choice(len(_SHAPES), number, p=_SHAPE_SHARE)]
    width, height = np.ascontiguousarray(shape.T, dtype=np.int32)
    return Images(ids, height, width, tuple(f"{value:012d}.jpg" for value in ids.tolist()))


def _categories(rank: Ints, federated: bool) -> Categories:
    """Classes named by id; COCO's ids have holes, its classes no frequency."""
    classes = len(rank)
    row = np.arange(classes)
    ids = (row + 1 if federated else row + 1 + row // 8).astype(np.int64)
    frequent, common = round(_FREQUENT * classes), round((_FREQUENT + _COMMON) * classes)
    frequency = np.array(["f", "c", "r"])[np.digitize(rank, [frequent, common])]
    names = tuple(f"class_{value:04d}" for value in ids.tolist())
    return Categories(ids, names, frequency if federated else np.full(classes, "", dtype="U1"))


def _positives(
    rng: np.random.Generator, images: int, rank: Ints, rarity: Floats, objects_per_image: float
) -> tuple[Ints, Ints]:
    """The (image, class) cells with objects as sorted image * C + class, and objects in each."""
    classes = len(rank)
    weight = (rank + 1 + classes / 12) ** -3.0
    weight /= weight.sum()
    tail = 1.1 + 0.9 * rarity
    mean = (np.arange(1, _MOST_INSTANCES + 1) ** -tail[:, None]).sum(axis=1)
    spare = max(images * objects_per_image - mean.sum(), 0.0) / (weight @ mean)
    share = np.minimum((1 + spare * weight) / images, 0.95)
    draws = np.floor(-images * np.log1p(-share) + rng.random(classes)).astype(np.int64)
    category = np.repeat(np.arange(classes), np.maximum(draws, 1))
    # Drawn with replacement: `draws` is the number that leaves `share` of the images distinct.
    cells = np.unique(rng.integers(0, images, len(category)) * classes + category)
    count = np.floor((1 - rng.random(len(cells))) ** (-1 / tail[cells % classes]))
    return cells, np.minimum(count, _MOST_INSTANCES).astype(np.int64)


def _boxes(
    rng: np.random.Generator, cell: Ints, count: Ints, limit: Floats, lattice: Lattice
) -> Floats:
    """[M, 4] boxes in steps; crowds are of smaller things, and a class's boxes keep apart."""
    scale = scene_scales(rng, len(count)) / count**0.35
    size = box_sizes(rng, scale[cell])
    box = lattice.place(size, rng.random((len(cell), 2)), limit)
    first = (np.cumsum(count) - count)[cell]
    pending = np.arange(len(cell))
    for _ in range(12):
        near = highest_overlap(box[pending], first[pending], pending, box) > 0.2
        pending = pending[near]
        box[pending] = lattice.place(size[pending], rng.random((len(pending), 2)), limit[pending])
    return box


def _federated_lists(
    rng: np.random.Generator, cells: Ints, images: int, classes: int
) -> tuple[ImageLists, ImageLists]:
    """Negative classes (never positive ones), and not-exhaustive ones (some of the positive)."""
    number = rng.poisson(min(_NEGATIVES, 0.4 * classes), images)
    drawn = np.repeat(np.arange(images), number) * classes + rng.integers(0, classes, number.sum())
    negative = np.setdiff1d(drawn, cells)
    partial = cells[rng.random(len(cells)) < _NOT_EXHAUSTIVE]
    return (
        _lists(negative, images, classes),
        _lists(partial, images, classes),
    )


def _lists(cells: Ints, images: int, classes: int) -> ImageLists:
    offsets = np.searchsorted(cells, np.arange(images + 1) * classes).astype(np.int64)
    return ImageLists(offsets, (cells % classes).astype(np.int32))
