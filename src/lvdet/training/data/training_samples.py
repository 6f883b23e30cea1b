"""One image with its objects, resized and possibly flipped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lvdet.errors import InputError
from lvdet.training.configuration import config
from lvdet.training.data.dataset import Dataset
from lvdet.training.data.image_files import read_picture
from lvdet.training.data.resize import draw_size, resized
from lvdet.training.data.tiles import Tile, make_tiles
from lvdet.training.samplers.generator import SAMPLE, generator


@dataclass(frozen=True)
class Sample:
    """A resized image and its n objects.

    pixels: uint8[h, w, 3] RGB
    box, label: [n, 4] float32 and [n] int64, as in a batch
    tiles:  of each object, at most TILE x TILE; None: no pixels
    """

    pixels: NDArray[np.uint8]
    seed: int
    box: NDArray[np.float32]
    label: NDArray[np.int64]
    tiles: list[Tile | None]


def make_sample(dataset: Dataset, row: int, position: int, options: config.Config) -> Sample:
    """The image of a row as it is seen at a position of the stream. Its randomness depends only on
    the run's seed and that position."""
    random = generator(options.run.seed, SAMPLE, position)
    side = draw_size(options.input, random)
    flip = bool(random.random() < options.input.flip)
    seed = int(random.integers(np.iinfo(np.int64).max))

    path = dataset.path(row)
    picture = read_picture(path)
    original = int(dataset.size[row, 0]), int(dataset.size[row, 1])
    if picture.size != original[::-1]:
        raise InputError(
            f"{path}: the image is {picture.width} x {picture.height} pixels, but the "
            f"annotations say {original[1]} x {original[0]}"
        )
    size = resized(*original, side, options.input)
    pixels = resize_picture(picture, size, flip)
    rows = np.arange(dataset.first[row], dataset.first[row + 1])
    scale = np.array([size[1] / original[1], size[0] / original[0]] * 2)
    box = (dataset.box[rows] * scale).astype(np.float32)
    tiles: list[Tile | None] = [None] * len(rows)
    if options.model.masks:
        tiles = make_tiles(dataset.masks_of(row), original, size, f"{path}: masks")
    if flip:
        box[:, [0, 2]] = size[1] - box[:, [2, 0]]
        tiles = [tile and _flipped(tile, size[1]) for tile in tiles]
    return Sample(pixels, seed, box, dataset.label[rows].astype(np.int64), tiles)


def resize_picture(
    picture: Image.Image, size: tuple[int, int], flip: bool = False
) -> NDArray[np.uint8]:
    """uint8[h, w, 3] the image at another size (height, width), antialiased when shrunk, and
    possibly flipped horizontally."""
    if picture.size != size[::-1]:
        picture = picture.resize(size[::-1], Image.Resampling.BILINEAR)
    if flip:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return np.asarray(picture)


def _flipped(tile: Tile, width: int) -> Tile:
    inside, (x0, y0, wide, high) = tile
    return inside[:, ::-1], (width - x0 - wide, y0, wide, high)
