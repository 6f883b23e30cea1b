"""Detections image by image, for adapters that make a table of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lvdet.tables.detections import Detections
from lvdet.writers.image_rows import (
    ClassIds,
    ImageRows,
    detection_table,
    image_number,
    image_rows,
)


class ImageCollection:
    """Detections by image, all in memory. An image that was added already is left out, as samplers
    repeat images to fill the last batch."""

    def __init__(self, source: str = "detections", class_ids: ClassIds = None) -> None:
        self.source = source
        self._class_ids = class_ids
        self._rows: dict[int, ImageRows] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __getitem__(self, image_id: int) -> ImageRows:
        return self._rows[image_id]

    def add(self, image_id: Any, corners: Any, scores: Any, labels: Any, masks: Any = None) -> None:
        """Adds an image: [n, 4] boxes as two corners in pixels, n scores, n labels and, optionally,
        n masks."""
        image = image_number(image_id, self.source)
        if image not in self._rows:
            self._rows[image] = image_rows(
                *(labels, corners, scores, masks),
                source=f"{self.source}, image {image}",
                box_format="xyxy",
                rounded=True,
                class_ids=self._class_ids,
            )

    def merge(self, other: ImageCollection) -> None:
        """Adds the images of another process that are not here yet."""
        for image_id in other:
            self._rows.setdefault(image_id, other[image_id])

    def detections(self) -> Detections:
        """All rows as a table, images in the order in which they came."""
        return detection_table([*self._rows], [*self._rows.values()], self.source)
