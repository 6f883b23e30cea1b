"""Images as training loops have them, mappings of arrays, collected into tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.bitmaps import areas_of_masks, masks_from_bitmaps
from lvdet.files.box_formats import from_format
from lvdet.files.records import masks_from_segmentations
from lvdet.tables.categories import Categories
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth, ImageLists, Images
from lvdet.tables.masks import Masks
from lvdet.tables.problems import rows_of
from lvdet.tables.values import require, value_problems
from lvdet.writers.arguments import floats, to_numpy, whole_number, whole_numbers

Item = Mapping[str, Any]
#: LVIS's lists of an image, in a target.
NEGATIVE, NOT_EXHAUSTIVE = "neg_category_ids", "not_exhaustive_category_ids"


@dataclass(frozen=True, eq=False)
class Objects:
    """Predictions or targets of one image: [n] labels, [n, 4] x, y, w, h, and n masks if they are
    compared."""

    label: NDArray[np.int64]
    box: NDArray[np.float64]
    masks: Masks | None

    def __len__(self) -> int:
        return len(self.label)


@dataclass(frozen=True, eq=False)
class Target:
    """The objects of one image, and what is known about them."""

    objects: Objects
    area: NDArray[np.float64]
    crowd: NDArray[np.bool_]
    ignore: NDArray[np.bool_]
    negative: NDArray[np.int64]
    not_exhaustive: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SeenImage:
    """One image: its id, predictions with [n] scores, and its target, if annotations come so."""

    id: int
    predictions: Objects
    score: NDArray[np.float64]
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
            value = np.asarray(to_numpy(item["image_id"]))
            if value.size == 1:
                name = f"image_id is {value.reshape(-1)[0]}, expected an integer"
                return whole_number(value.reshape(-1)[0], name)
            raise InputError(f"image_id has {value.size} values, expected one")
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
    found = _objects(prediction, source, box_format, masks)
    score = floats(_get(prediction, "scores", source), "scores", source).reshape(-1)
    if len(score) != len(found):
        raise InputError(f"{source}: {len(score)} scores for {len(found)} labels")
    require(value_problems(source, score, found.box))
    known = None if target is None else _target(target, image_id, box_format, masks, lists)
    if known is not None and categories is not None:
        unknown = np.flatnonzero(rows_of(categories.ids, known.objects.label) < 0)
        if len(unknown):
            label = known.objects.label[unknown[0]]
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
    return SeenImage(image_id, found, score, known)


def detection_table(images: Sequence[SeenImage], *, masks: bool) -> Detections:
    """The predictions of some images."""
    every = [one.predictions for one in images]
    return Detections.from_arrays(
        np.repeat(_ids(images), [len(one) for one in every]),
        _concatenated([one.label for one in every], np.int64),
        _concatenated([one.score for one in images], np.float64),
        None if masks else _boxes(every),
        _masks(every) if masks else None,
        "predictions",
    )


def target_table(
    images: Sequence[SeenImage], categories: Categories | None, *, masks: bool, federated: bool
) -> GroundTruth:
    """The targets of some images, by ascending id; categories: all that targets have, or None for
    those that occur."""
    targets = [one.target for one in images if one.target is not None]
    every = [one.objects for one in targets]
    label = _concatenated([one.label for one in every], np.int64)
    if categories is None:
        labels = [label, *(one.predictions.label for one in images)]
        labels += [one for target in targets for one in (target.negative, target.not_exhaustive)]
        categories = numbered(np.unique(_concatenated(labels, np.int64)))
    height, width = _sizes(images)
    rows = len(label)
    return GroundTruth(
        Images(_ids(images), height, width, ("",) * len(images)),
        categories,
        id=np.arange(1, rows + 1),
        image=np.repeat(np.arange(len(every), dtype=np.int32), [len(one) for one in every]),
        category=rows_of(categories.ids, label),
        box=_boxes(every),
        area=_concatenated([one.area for one in targets], np.float64),
        ignore=_concatenated([one.ignore for one in targets], np.bool_),
        crowd=_concatenated([one.crowd for one in targets], np.bool_),
        masks=_masks(every) if masks else None,
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
    objects = _objects(target, source, box_format, masks)
    count = len(objects)
    given = floats(target["area"], "area", source) if "area" in target else np.zeros(count)
    if given.shape != (count,):
        raise InputError(f"{source}: area has shape {given.shape}, expected ({count},)")
    own = objects.box[:, 2] * objects.box[:, 3]
    own = own if objects.masks is None else areas_of_masks(objects.masks, source)
    area = np.where(given > 0, given, own)
    require(value_problems(source, np.zeros(count), objects.box))
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


def _objects(item: Item, source: str, box_format: str, with_masks: bool) -> Objects:
    label = whole_numbers(_get(item, "labels", source), "labels", source)
    masks = None
    if with_masks:
        masks = _encoded(_get(item, "masks", source), len(label), source)
        box = np.zeros((len(label), 4))  # not compared
    else:
        box = floats(_get(item, "boxes", source), "boxes", source)
        box = box.reshape(0, 4) if not box.size else box
        if box.ndim != 2 or box.shape[1] != 4:
            raise InputError(f"{source}: boxes have shape {box.shape}, expected (n, 4)")
        box = from_format(box_format, box)
    for name, count in (
        ("masks", len(label) if masks is None else len(masks)),
        ("boxes", len(box)),
    ):
        if count != len(label):
            raise InputError(f"{source}: {count} {name} for {len(label)} labels")
    return Objects(label, box, masks)


def _encoded(given: Any, count: int, source: str) -> Masks:
    """Masks of [n, height, width] pixels, or of encoded masks as in COCO files."""
    if isinstance(given, list | tuple) and given and not hasattr(given[0], "shape"):
        return masks_from_segmentations(list(given), source)
    pixels = np.asarray(to_numpy(given))
    if not pixels.size and not count:
        return masks_from_segmentations([], source)
    if pixels.dtype.kind == "f" and np.isin(pixels, (0, 1)).all():
        pixels = pixels != 0
    return masks_from_bitmaps(pixels, source)


def _get(item: Item, name: str, source: str) -> Any:
    if not isinstance(item, Mapping):
        raise InputError(f"{source}: of type {type(item).__name__}, expected a mapping")
    if name not in item:
        raise InputError(f"{source}: has no {name!r}")
    return item[name]


def _flags(target: Item, name: str, count: int, source: str) -> NDArray[np.bool_]:
    if name not in target:
        return np.zeros(count, dtype=bool)
    found: NDArray[np.bool_] = np.asarray(to_numpy(target[name])).reshape(-1) != 0
    if len(found) != count:
        raise InputError(f"{source}: {len(found)} {name} for {count} labels")
    return found


def _ids(images: Sequence[SeenImage]) -> NDArray[np.int64]:
    return np.array([one.id for one in images], dtype=np.int64)


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
    return ImageLists(offsets.astype(np.int64), _concatenated(rows, np.int32))


def _boxes(every: Sequence[Objects]) -> NDArray[np.float64]:
    return np.concatenate([np.zeros((0, 4)), *(one.box for one in every)])


def _masks(every: Sequence[Objects]) -> Masks:
    found = [one.masks for one in every if one.masks is not None]
    return Masks.concatenate(found) if found else masks_from_segmentations([], "masks")


def _concatenated(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])
