"""Training sets from annotation files in LVIS or COCO format."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from lvdet.errors import InputError
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.progress import Progress
from lvdet.tables.masks import no_masks
from lvdet.training.data.dataset import Dataset
from lvdet.training.data.image_paths import find_images

#: Boxes with a shorter side, in pixels, are left out.
SHORTEST = 1.0


def read_dataset(
    annotations: Path, images: Path, *, name: str = "train", progress: Progress | None = None
) -> Dataset:
    """The dataset of an annotation file and its image folder.

    Crowds are left out, and so are boxes with, inside the image, a side of less than one pixel.
    Counts are of what is left; those in the file are not read.
    """
    gt = read_ground_truth(annotations, progress=progress)
    if not len(gt.categories):
        raise InputError(f"{annotations}: no categories")
    size = np.stack([gt.images.height, gt.images.width], axis=1).astype(np.int64)
    if (size < 1).any():
        row = int(np.argmax((size < 1).any(axis=1)))
        raise InputError(
            f"{annotations}: image {gt.images.ids[row]} is {size[row, 1]} x {size[row, 0]} pixels"
        )
    names = [os.fsencode(file) for file in find_images(annotations, gt.images, images)]
    corners = np.concatenate([gt.box[:, :2], gt.box[:, :2] + gt.box[:, 2:]], axis=1)
    box = corners.clip(0, np.tile(size[:, ::-1], 2)[gt.image])
    kept = np.flatnonzero((box[:, 2:] - box[:, :2] >= SHORTEST).all(axis=1) & ~gt.crowd)
    kept = kept[np.argsort(gt.image[kept], kind="stable")]
    frequency = gt.categories.frequency.tolist()
    return Dataset(
        name=name,
        folder=images,
        image_ids=gt.images.ids,
        size=size,
        category_ids=gt.categories.ids,
        category_names=[*gt.categories.names],
        frequency=frequency if all(frequency) else None,
        first=np.append(0, np.cumsum(np.bincount(gt.image[kept], minlength=len(size)))),
        label=gt.category[kept],
        box=box[kept].astype(np.float32),
        masks=no_masks(len(kept)) if gt.masks is None else gt.masks[kept],
        file_names=np.frombuffer(b"".join(names), dtype=np.uint8),
        file_ends=np.cumsum([len(file) for file in names]),
    )
