"""Images as training loops have them, mappings of arrays, collected into tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.bitmaps import areas_of_masks
from lvdet.tables.categories import Categories
from lvdet.tables.detections import floats
from lvdet.tables.ground_truth import GroundTruth, ImageLists, Images
from lvdet.tables.problems import rows_of
from lvdet.writers.arguments import to_numpy, whole_numbers
from lvdet.writers.image_rows import (
    ImageRows,
    all_boxes,
    all_masks,
    concatenated,
    image_number,
    image_rows,
)

Item = Mapping[str, Any]
#: LVIS's lists of an image, in a target.
NEGATIVE, NOT_EXHAUSTIVE = "neg_category_ids", "not_exhaustive_category_ids"


@dataclass(frozen=True, eq=False)
class Target:
    """The objects of one image, and what is known about them."""

    objects: ImageRows
    area: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    ignore: NDArray[np.bool_]
    negative: NDArray[np.int64]
    not_exhaustive: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeenImage:
    """One image: its id, predictions, and its target, if annotations come so."""

    id: int
    predictions: ImageRows
    target: Target | None

    @property
    def rows(self) -> int:
        """Rows that it takes up."""
        return len(self.predictions) + (0 if self.target is None else len(self.target.objects))

    @property
    def mask_bytes(self) -> int:
        """Bytes of its masks."""
        both = [self.predictions, *([] if self.target is None else [self.target.objects])]
        return sum(0 if one.masks is None else one.masks.data.nbytes for one in both)


def image_id_of(prediction: Item, target: Item | None) -> int:
    """The id of an image: the target's, or the prediction's."""
    for item in (target, prediction):
        if item is not None and "image_id" in item:
            return image_number(item["image_id"])
    raise InputError(
        "a target has no image_id, which tells images apart: add it to each target or prediction"
    )


def seen_image(
    prediction: Item,
    target: Item | None,
    image_id: int,
    *,
    box_format: str,
    masks: bool,
    lists: bool,
    categories: Categories | None,
) -> SeenImage:
    """An image with checked columns. `masks`: masks are compared, not boxes; `lists`: targets have
    LVIS's lists; categories: those that targets may have, None for any."""
    source = f"predictions of image {image_id}"
    found = _rows(prediction, "scores", source, box_format, masks)
    known = None if target is None else _target(target, image_id, box_format, masks, lists)
    if known is not None and categories is not None:
        unknown = np.flatnonzero(rows_of(categories.ids, known.objects.category_id) < 0)
        if len(unknown):
            label = known.objects.category_id[unknown[0]]
            raise InputError(f"target of image {image_id}: label {label} is not among the classes")
    if known is not None and found.masks is not None and known.objects.masks is not None:
        sizes = {
            (int(height), int(width))
            for one in (found.masks, known.objects.masks)
            for height, width in zip(one.height[:1], one.width[:1], strict=True)
        }
        if len(sizes) > 1:
            shown = " and ".join(f"{height} x {width}" for height, width in sorted(sizes))
            raise InputError(f"image {image_id}: masks of different sizes, {shown}")
    return SeenImage(image_id, found, known)


def target_table(
    images: Sequence[SeenImage], categories: Categories | None, *, masks: bool, federated: bool
) -> GroundTruth:
    """The targets of some images, by ascending id; categories: all that targets have, or None for
    those that occur."""
    targets = [one.target for one in images if one.target is not None]
    every = [one.objects for one in targets]
    label = concatenated([one.category_id for one in every], np.int64)
    if categories is None:
        labels = [label, *(one.predictions.category_id for one in images)]
        labels += [one for target in targets for one in (target.negative, target.not_exhaustive)]
        categories = numbered(np.unique(concatenated(labels, np.int64)))
    ids = np.array([one.id for one in images], dtype=np.int64)
    height, width = _sizes(images)
    rows = len(label)
    return GroundTruth(
        Images(ids, height, width, ("",) * len(images)),
        categories,
        id=np.arange(1, rows + 1),
        image=np.repeat(np.arange(len(every), dtype=np.int32), [len(one) for one in every]),
        category=rows_of(categories.ids, label),
        box=all_boxes(every),
        area=concatenated([one.area for one in targets], np.float64),
        ignore=concatenated([one.ignore for one in targets], np.bool_),
        crowd=concatenated([one.crowd for one in targets], np.bool_),
        masks=all_masks(every) if masks else None,
        negative=_lists([one.negative for one in targets], categories) if federated else None,
        not_exhaustive=(
            _lists([one.not_exhaustive for one in targets], categories) if federated else None
        ),
        source="targets",
    )


def numbered(ids: NDArray[np.int64]) -> Categories:
    """Classes that are named by their ids."""
    return Categories(
        ids, tuple(str(one) for one in ids.tolist()), np.full(len(ids), "", dtype=np.str_)
    )


def _target(target: Item, image_id: int, box_format: str, masks: bool, lists: bool) -> Target:
    source = f"target of image {image_id}"
    objects = _rows(target, None, source, box_format, masks)
    count = len(objects)
    given = floats(to_numpy(target.get("area", np.zeros(count))), "area", source)
    if given.shape != (count,):
        raise InputError(f"{source}: area has shape {given.shape}, expected ({count},)")
    own = objects.box[:, 2] * objects.box[:, 3]
    own = own if objects.masks is None else areas_of_masks(objects.masks, source)
    area = np.where(given > 0, given, own)
    if not np.isfinite(area).all():
        raise InputError(f"{source}: area is not finite")
    none = np.zeros(0, dtype=np.int64)
    return Target(
        objects,
        area,
        _flags(target, "iscrowd", count, source),
        _flags(target, "ignore", count, source),
        whole_numbers(_get(target, NEGATIVE, source), NEGATIVE, source) if lists else none,
        whole_numbers(target.get(NOT_EXHAUSTIVE, none), NOT_EXHAUSTIVE, source) if lists else none,
    )


def _rows(
    item: Item, scores: str | None, source: str, box_format: str, with_masks: bool
) -> ImageRows:
    """The rows of a prediction or, without scores, of a target; with boxes or with masks."""
    labels = _get(item, "labels", source)
    return image_rows(
        labels,
        None if with_masks else _get(item, "boxes", source),
        np.zeros(np.size(to_numpy(labels))) if scores is None else _get(item, scores, source),
        _get(item, "masks", source) if with_masks else None,
        source=source,
        box_format=box_format,
        boxless=with_masks,
    )


def _get(item: Item, name: str, source: str) -> Any:
    if not isinstance(item, Mapping):
        raise InputError(f"{source}: of type {type(item).__name__}, expected a mapping")
    if item.get(name) is None:
        raise InputError(f"{source}: has no {name!r}")
    return item[name]


def _flags(target: Item, name: str, count: int, source: str) -> NDArray[np.bool_]:
    if name not in target:
        return np.zeros(count, dtype=bool)
    found: NDArray[np.bool_] = np.asarray(to_numpy(target[name])).reshape(-1) != 0
    if len(found) != count:
        raise InputError(f"{source}: {len(found)} {name} for {count} labels")
    return found


def _sizes(images: Sequence[SeenImage]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Height and width of each image, by its masks; 0 without masks."""
    size = np.zeros((2, len(images)), dtype=np.int32)
    for place, one in enumerate(images):
        for objects in (one.predictions, *(() if one.target is None else (one.target.objects,))):
            if objects.masks is not None and len(objects):
                size[:, place] = objects.masks.height[0], objects.masks.width[0]
    return size[0], size[1]


def _lists(lists: Sequence[NDArray[np.int64]], categories: Categories) -> ImageLists:
    rows = [rows_of(categories.ids, one) for one in lists]
    rows = [one[one >= 0] for one in rows]
    offsets = np.append(0, np.cumsum([len(one) for one in rows], dtype=np.int64))
    return ImageLists(offsets.astype(np.int64), concatenated(rows, np.int32))
