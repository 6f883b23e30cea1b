"""Tables as a training loop has them: a prediction and a target for each image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import lvdet
from lvdet.files.bitmaps import bitmaps_from_masks
from lvdet.tables.ground_truth import ImageLists

Item = dict[str, Any]


def in_order(dt: lvdet.Detections) -> lvdet.Detections:
    """The file whose images are in order of id, as metrics rank equal scores."""
    return dt[np.argsort(dt.image_ids[dt.image], kind="stable")]


def loop_images(
    gt: lvdet.GroundTruth, dt: lvdet.Detections, *, masks: bool = False
) -> Iterable[tuple[Item, Item]]:
    """The prediction and the target of each image, boxes as x, y, width and height."""
    names = gt.categories.ids
    for row, image_id in enumerate(gt.images.ids.tolist()):
        found = np.flatnonzero(dt.image_ids[dt.image] == image_id)
        known = np.flatnonzero(gt.image == row)
        prediction = {
            "boxes": dt.box[found],
            "scores": dt.score[found],
            "labels": dt.category_ids[dt.category[found]],
        }
        target = {
            "image_id": image_id,
            "boxes": gt.box[known],
            "labels": names[gt.category[known]],
            "area": gt.area[known],
            "iscrowd": gt.crowd[known],
            "ignore": gt.ignore[known],
        }
        for name, lists in (
            ("neg_category_ids", gt.negative),
            ("not_exhaustive_category_ids", gt.not_exhaustive),
        ):
            if lists is not None:
                target[name] = names[listed(lists, row)]
        if masks:
            assert dt.masks is not None
            assert gt.masks is not None
            size = gt.images.height[row], gt.images.width[row]
            prediction["masks"] = pixels(dt.masks[found], size)
            target["masks"] = pixels(gt.masks[known], size)
        yield prediction, target


def listed(lists: ImageLists, row: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return lists.category[lists.offsets[row] : lists.offsets[row + 1]]


def pixels(masks: Any, size: tuple[int, int]) -> Any:
    """[n, height, width] pixels."""
    found = bitmaps_from_masks(masks)
    return np.stack(found) if found else np.zeros((0, *size), dtype=bool)
