"""To and from supervision's `Detections`, which hold one image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from lvdet.errors import InputError
from lvdet.files.bitmaps import bitmaps_from_masks
from lvdet.integrations.image_collection import ImageCollection
from lvdet.tables.categories import Categories
from lvdet.tables.detections import Detections
from lvdet.tables.masks import RLE
from lvdet.tables.problems import rows_of
from lvdet.writers.image_rows import ClassIds

__all__ = ["detections_from_supervision", "detections_to_supervision"]

_SOURCE = "supervision"


def detections_from_supervision(
    images: Mapping[int, Any] | Iterable[tuple[int, Any]], *, class_ids: ClassIds = None
) -> Detections:
    """`supervision.Detections` by image id as one table, masks included.

    class_ids: the class id of each of their class_id; by default they are the same
    """
    rows = ImageCollection(_SOURCE, class_ids)
    for image_id, one in images.items() if isinstance(images, Mapping) else images:
        for name in ("confidence", "class_id"):
            if getattr(one, name) is None and len(one):
                raise InputError(f"{_SOURCE}, image {image_id}: {name} is None")
        empty = len(one) == 0
        rows.add(
            image_id,
            one.xyxy,
            [] if empty else one.confidence,
            np.zeros(0, np.int64) if empty else one.class_id,
            None if one.mask is None or empty else np.asarray(one.mask),
        )
    return rows.detections()


def detections_to_supervision(
    detections: Detections, image_id: int, categories: Categories | None = None
) -> Any:
    """The detections of one image as `supervision.Detections`, in their order. class_id is the
    class id; with categories, such as those of the annotations, class names come along."""
    import supervision

    image = np.flatnonzero(detections.image_ids == image_id)
    found = detections[np.isin(detections.image, image)]
    class_id = detections.category_ids[found.category]
    pixels = None
    if found.masks is not None and len(found):
        if (found.masks.kind != RLE).any():
            raise InputError(f"{_SOURCE}: masks are polygons, expected run lengths")
        pixels = np.stack(bitmaps_from_masks(found.masks, detections.source))
    data = {}
    if categories is not None:
        rows = rows_of(categories.ids, class_id)
        if (rows < 0).any():
            raise InputError(f"{_SOURCE}: no class has the id {class_id[rows < 0][0]}")
        data["class_name"] = np.array([categories.names[row] for row in rows], dtype=np.str_)
    return supervision.Detections(
        xyxy=np.concatenate([found.box[:, :2], found.box[:, :2] + found.box[:, 2:]], axis=1),
        mask=pixels,
        confidence=found.score,
        class_id=class_id,
        data=data,
    )
