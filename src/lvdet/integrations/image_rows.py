"""Detections as frameworks pass them: image after image, boxes as corners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.tables.detections import Detections
from lvdet.tables.masks import Masks
from lvdet.writers.arguments import to_numpy, whole_number, whole_numbers

#: The class ids of labels: by index, or by label.
ClassIds: TypeAlias = Sequence[int] | Mapping[int, int]


@dataclass(frozen=True)
class ImageRow:
    """The detections of one image: [n, 4] boxes as x, y, width and height, scores, class ids."""

    box: NDArray[np.float64]
    score: NDArray[np.float64]
    category_id: NDArray[np.int64]
    masks: Masks | None


class ImageRows:
    """Detections by image. An image that was added already is left out, as samplers repeat images
    to fill the last batch."""

    def __init__(self, source: str = "detections", class_ids: ClassIds | None = None) -> None:
        self.source = source
        self._class_ids = class_ids
        self._rows: dict[int, ImageRow] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __getitem__(self, image_id: int) -> ImageRow:
        return self._rows[image_id]

    def add(
        self, image_id: Any, corners: Any, scores: Any, labels: Any, pixels: Any = None
    ) -> None:
        """Adds an image: [n, 4] boxes as two corners in pixels, n scores, n labels and, optionally,
        [n, height, width] pixels of masks; tensors or arrays."""
        name = to_numpy(image_id)
        image = whole_number(
            name.item() if isinstance(name, np.ndarray) and name.size == 1 else name,
            f"{self.source}: image id is {image_id!r}, expected an integer",
        )
        if image in self._rows:
            return
        source = f"{self.source}, image {image}"
        score = np.asarray(to_numpy(scores), dtype=np.float64)
        box = boxes_of_corners(corners, source)
        category_id = self._ids(labels, source)
        masks = None if pixels is None else masks_from_bitmaps(np.asarray(to_numpy(pixels)), source)
        lengths = {"boxes": len(box), "scores": score.size, "labels": len(category_id)}
        if masks is not None:
            lengths["masks"] = len(masks)
        if len(set(lengths.values())) != 1 or score.ndim != 1:
            raise InputError(f"{source}: columns differ in length: {lengths}")
        self._rows[image] = ImageRow(box, score, category_id, masks)

    def merge(self, other: ImageRows) -> None:
        """Adds the images of another process that are not here yet."""
        for image_id in other:
            self._rows.setdefault(image_id, other[image_id])

    def detections(self) -> Detections:
        """All rows as a table, images in the order in which they came."""
        rows = self._rows.values()
        filled = [one for one in rows if len(one.score)]
        masks = [one.masks for one in filled if one.masks is not None]
        if masks and len(masks) < len(filled):
            raise InputError(f"{self.source}: some images have masks, others have none")
        counts = [len(one.score) for one in rows]
        return Detections.from_arrays(
            np.repeat(np.array([*self._rows], dtype=np.int64), counts),
            np.concatenate([np.zeros(0, np.int64), *(one.category_id for one in rows)]),
            np.concatenate([np.zeros(0), *(one.score for one in rows)]),
            np.concatenate([np.zeros((0, 4)), *(one.box for one in rows)]),
            Masks.concatenate(masks) if masks else None,
            self.source,
        )

    def _ids(self, labels: Any, source: str) -> NDArray[np.int64]:
        """The class ids of labels."""
        found = whole_numbers(labels, "labels", source)
        known = self._class_ids
        if known is None:
            return found
        try:
            listed = [known[label] for label in found.tolist() if label >= 0]
        except (IndexError, KeyError):
            listed = []
        if len(listed) != len(found):
            raise InputError(
                f"{source}: labels go from {found.min()} to {found.max()}, but class_ids has "
                f"{len(known)} classes"
            )
        return np.array(listed, dtype=np.int64)


def boxes_of_corners(corners: Any, source: str) -> NDArray[np.float64]:
    """[n, 4] x, y, width and height. The size is computed in the precision of the corners, as the
    frameworks' own evaluations do."""
    found = np.asarray(to_numpy(corners))
    if found.size == 0:
        return np.zeros((0, 4))
    if found.ndim != 2 or found.shape[1] != 4 or found.dtype.kind not in "iuf":
        raise InputError(
            f"{source}: boxes are {found.dtype} with shape {found.shape}, expected (n, 4) numbers"
        )
    return np.concatenate([found[:, :2], found[:, 2:] - found[:, :2]], axis=1).astype(np.float64)
