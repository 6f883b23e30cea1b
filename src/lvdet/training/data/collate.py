"""Collates samples into a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from lvdet.training.data.batch import TILE, Batch, Objects
from lvdet.training.data.training_samples import Sample

#: The sides of a batch are multiples of this, and its room for objects of ROOM.
STRIDE = 32
ROOM = 8


def collate(samples: Sequence[Sample]) -> Batch:
    """The batch of samples, with room for the objects of the fullest image."""
    images = [sample.pixels for sample in samples]
    room = _up(max(1, *(len(sample.label) for sample in samples)), ROOM)
    batch = len(samples)
    box = np.zeros((batch, room, 4), dtype=np.float32)
    label = np.full((batch, room), -1, dtype=np.int64)
    tile = np.zeros((batch, room, TILE, TILE), dtype=np.uint8)
    frame = np.zeros((batch, room, 4), dtype=np.float32)
    for row, sample in enumerate(samples):
        count = len(sample.label)
        box[row, :count] = sample.box
        label[row, :count] = sample.label
        for place, made in enumerate(sample.tiles):
            if made is not None:
                inside, (x0, y0, width, height) = made
                high, wide = inside.shape
                tile[row, place, :high, :wide] = inside
                frame[row, place] = x0, y0, wide / width, high / height
    objects = Objects(*map(torch.from_numpy, (box, label, tile, frame)))
    pixels, size = stack(images)
    seed = torch.tensor([sample.seed for sample in samples], dtype=torch.int64)
    return Batch(pixels, size, seed, objects)


def stack(images: Sequence[NDArray[np.uint8]]) -> tuple[torch.Tensor, torch.Tensor]:
    """uint8[B, 3, H, W] with each image in the upper left corner, black around it, and
    int64[B, 2] their sizes.

    In memory the three channels of a pixel are beside each other, as they come from the file and
    as convolutions in channels-last layout want them.
    """
    size = np.array([image.shape[:2] for image in images], dtype=np.int64)
    height, width = (_up(side, STRIDE) for side in size.max(axis=0).tolist())
    pixels = np.zeros((len(images), height, width, 3), dtype=np.uint8)
    for row, image in enumerate(images):
        pixels[row, : image.shape[0], : image.shape[1]] = image
    return torch.from_numpy(pixels).permute(0, 3, 1, 2), torch.from_numpy(size)


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
