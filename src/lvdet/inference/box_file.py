"""The results of the first pass, image by image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import LvdetError
from lvdet.files.stream import detection_tables


@dataclass(frozen=True)
class Rows:
    """The detections of an image.

    box:   [n, 4] float64 x, y, width, height in pixels of the original image
    score: [n] float64
    label: [n] int64 class rows from 0
    """

    box: NDArray[np.float64]
    score: NDArray[np.float64]
    label: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.score)

    @property
    def corners(self) -> NDArray[np.float64]:
        """[n, 4] x1, y1, x2, y2."""
        return np.concatenate([self.box[:, :2], self.box[:, :2] + self.box[:, 2:]], axis=1)


#: No detections.
NONE = Rows(np.zeros((0, 4)), np.zeros(0), np.zeros(0, dtype=np.int64))


class BoxFile:
    """Detections written by a writer, with those of each image adjacent.

    images: the ids of those that have any
    """

    def __init__(self, path: Path, category_ids: Sequence[int]) -> None:
        self._path = path
        self.images: set[int] = set()
        for table in detection_tables(path, masks=False):
            self.images.update(table.image_ids.tolist())
        self._rest = rows_by_image(path, category_ids)

    def next(self, image_id: int) -> Rows:
        """The detections of an image, in their order; skips earlier images in the file. Empty for
        an image without detections."""
        if image_id not in self.images:
            return NONE
        for found, rows in self._rest:
            if found == image_id:
                return rows
        raise LvdetError(f"{self._path}: image {image_id} is not where it was expected")


def rows_by_image(path: Path, category_ids: Sequence[int]) -> Iterator[tuple[int, Rows]]:
    """Ids of images and their detections, in file order; the detections of an image are
    adjacent."""
    row_of = {category_id: row for row, category_id in enumerate(category_ids)}
    current: list[Rows] = []
    last = -1
    for table in detection_tables(path, masks=False):
        label = np.array([row_of[name] for name in table.category_ids.tolist()])
        edges = [0, *(np.flatnonzero(np.diff(table.image)) + 1).tolist(), len(table)]
        for begin, end in pairwise(edges):
            image_id = int(table.image_ids[table.image[begin]])
            if current and image_id != last:
                yield last, _joined(current)
                current = []
            of = slice(begin, end)
            current.append(Rows(table.box[of], table.score[of], label[table.category[of]]))
            last = image_id
    if current:
        yield last, _joined(current)


def _joined(parts: Sequence[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.box for part in parts]),
        np.concatenate([part.score for part in parts]),
        np.concatenate([part.label for part in parts]),
    )
