"""Overlaps inside one image and class, as the reference tools list them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lvdet.integrations.annotation_columns import Annotation
from lvdet.integrations.pycocotools import mask

Encode = Callable[[Annotation], Any]


def cell_overlaps(
    objects: Sequence[Annotation],
    detections: Sequence[Annotation],
    iou: str,
    encode: tuple[Encode, Encode],
    *,
    crowds: bool = False,
    limit: int | None = None,
) -> Any:
    """[D, G] overlaps of detections, by descending score, with objects; `encode` gives the masks of
    objects and of detections. An empty list where there are neither."""
    if not objects and not detections:
        return []
    found = sorted(detections, key=lambda one: -one["score"])[:limit]
    crowd = [crowds and bool(one.get("iscrowd", 0)) for one in objects]
    if iou == "bbox":
        return mask.iou([one["bbox"] for one in found], [one["bbox"] for one in objects], crowd)
    of_object, of_detection = encode
    return mask.iou(
        [of_detection(one) for one in found], [of_object(one) for one in objects], crowd
    )
