"""Drawn sets as real tables: images again and again under new ids, with all that is in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lvdet import Detections, GroundTruth
from lvdet.tables.ground_truth import ImageLists, Images
from lvdet.tables.problems import image_rows

Rows = NDArray[np.int64]


def drawn_truth(gt: GroundTruth, drawn: Rows) -> GroundTruth:
    """The annotations of the drawn images (rows, which may come again), numbered from 1."""
    rows, image = _copies(gt.image, len(gt.images), drawn)
    images = Images(
        np.arange(1, len(drawn) + 1),
        gt.images.height[drawn],
        gt.images.width[drawn],
        ("",) * len(drawn),
    )
    return replace(
        gt.where(rows),
        images=images,
        id=np.arange(1, len(rows) + 1),
        image=image,
        negative=_lists(gt.negative, drawn),
        not_exhaustive=_lists(gt.not_exhaustive, drawn),
    )


def drawn_detections(gt: GroundTruth, detections: Detections, drawn: Rows) -> Detections:
    """The detections in them."""
    known = image_rows(gt, detections)[detections.image]
    rows, image = _copies(known, len(gt.images), drawn)
    return replace(
        detections[rows], image=image, image_ids=np.arange(1, len(drawn) + 1, dtype=np.int64)
    )


def _copies(image: NDArray[np.int32], images: int, drawn: Rows) -> tuple[Rows, NDArray[np.int32]]:
    """Rows of the drawn images, in order of the draws, and the draw that each belongs to."""
    order = np.argsort(image, kind="stable")
    begins = np.searchsorted(image[order], np.arange(images + 1))
    counts = (begins[1:] - begins[:-1])[drawn]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = order[np.repeat(begins[:-1][drawn], counts) + within]
    return rows, np.repeat(np.arange(len(drawn), dtype=np.int32), counts)


def _lists(lists: ImageLists | None, drawn: Rows) -> ImageLists | None:
    if lists is None:
        return None
    parts = [lists.category[lists.offsets[row] : lists.offsets[row + 1]] for row in drawn]
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return ImageLists(offsets, np.concatenate([*parts, np.zeros(0, dtype=np.int32)]))
