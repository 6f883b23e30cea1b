"""Images and their objects, as columns."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.masks import Masks


@dataclass(frozen=True)
class Dataset:
    """I images of K classes with N annotations, those that nothing is learnt from left out.

    All large columns are arrays, so that forked processes share them.

    image_ids:    int64[I] ascending
    size:         int64[I, 2] height and width in pixels
    category_ids: int64[K] ascending; a class's row is its place here
    frequency:    LVIS's "r", "c" and "f" of each class, None where the file has none
    first:        int64[I + 1]; the annotations of image i are those from first[i] to first[i + 1]
    label:        int32[N] class rows
    box:          float32[N, 4] x1, y1, x2, y2 in pixels, inside the image
    masks:        the N masks
    """

    name: str
    folder: Path
    image_ids: NDArray[np.int64]
    size: NDArray[np.int64]
    category_ids: NDArray[np.int64]
    category_names: list[str]
    frequency: list[str] | None
    first: NDArray[np.int64]
    label: NDArray[np.int32]
    box: NDArray[np.float32]
    masks: Masks
    file_names: NDArray[np.uint8]
    file_ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.image_ids)

    def path(self, row: int) -> Path:
        """The path of an image."""
        begin = self.file_ends[row - 1] if row else 0
        name = self.file_names[begin : self.file_ends[row]].tobytes()
        return self.folder / os.fsdecode(name)

    def masks_of(self, row: int) -> Masks:
        """The masks of an image's annotations."""
        begin, end = self.first[row : row + 2].tolist()
        offsets = self.masks.offsets[begin : end + 1]
        return Masks(
            self.masks.data[offsets[0] : offsets[-1]],
            offsets - offsets[0],
            self.masks.kind[begin:end],
            self.masks.height[begin:end],
            self.masks.width[begin:end],
        )

    @cached_property
    def instance_count(self) -> NDArray[np.int64]:
        """[K] the number of annotations of each class."""
        return np.bincount(self.label, minlength=len(self.category_ids)).astype(np.int64)

    @cached_property
    def image_count(self) -> NDArray[np.int64]:
        """[K] the number of images with annotations of each class."""
        classes = self._pairs[1]
        return np.bincount(classes, minlength=len(self.category_ids)).astype(np.int64)

    @cached_property
    def image_classes(self) -> list[NDArray[np.int64]]:
        """For each image, the rows of its classes, ascending."""
        images, classes = self._pairs
        ends = np.cumsum(np.bincount(images, minlength=len(self)))
        return np.split(classes, ends[:-1]) if len(self) else []

    @cached_property
    def trainable(self) -> NDArray[np.int64]:
        """The rows of images with annotations. As in Detectron2, other images are not trained
        on."""
        return np.flatnonzero(np.diff(self.first))

    @cached_property
    def _pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct pairs of image and class, in order."""
        classes = max(1, len(self.category_ids))
        image = np.repeat(np.arange(len(self)), np.diff(self.first))
        pairs = np.unique(image * classes + self.label)
        return pairs // classes, pairs % classes
