"""The detections of one image, as an inference loop has them, checked; or its objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.files.box_formats import from_format
from lvdet.files.records import masks_from_segmentations
from lvdet.tables.description import counted
from lvdet.tables.detections import Detections, floats
from lvdet.tables.masks import NONE, Masks, no_masks
from lvdet.tables.values import require, value_problems
from lvdet.writers.arguments import to_numpy, whole_number, whole_numbers

#: The class ids of labels: by index, or by label; None where labels are class ids.
ClassIds: TypeAlias = Sequence[int] | Mapping[int, int] | NDArray[np.int64] | None


@dataclass(frozen=True, eq=False)
class ImageRows:
    """[n] class ids, [n] scores, [n, 4] boxes as x, y, width and height, and n masks, or None.

    Boxes that were not given are 0.
    """

    category_id: NDArray[np.int64]
    score: NDArray[np.float64]
    box: NDArray[np.float64]
    masks: Masks | None

    def __len__(self) -> int:
        return len(self.category_id)


def image_rows(
    labels: Any,
    boxes: Any,
    scores: Any,
    masks: Any = None,
    *,
    source: str,
    box_format: str = "xywh",
    rounded: bool = False,
    class_ids: ClassIds = None,
    boxless: bool = False,
) -> ImageRows:
    """Arrays, lists, or tensors of any framework and device as rows.

    labels: [n] whole numbers
    boxes:  [n, 4] in the format
    scores: [n] finite numbers
    masks:  as of `image_masks`
    rounded: see `image_boxes`
    boxless: boxes may be None, since masks are compared, or make the boxes
    """
    category_id = labels_to_ids(labels, class_ids, source)
    count = len(category_id)
    score = floats(to_numpy(scores), "score", source)
    if score.size and score.ndim != 1:
        raise InputError(f"{source}: score has shape {score.shape}, expected (n,)")
    if boxes is None and not boxless:
        raise InputError(f"{source}: detections need boxes or masks")
    if boxes is None:
        box = np.zeros((count, 4))
    else:
        box = image_boxes(boxes, box_format, source, rounded=rounded)
    other = [
        counted(length, *names)
        for length, names in ((len(box), ("box", "boxes")), (score.size, ("score",)))
        if length != count
    ]
    if other:
        raise InputError(f"{source}: {' and '.join(other)} for {counted(count, 'label')}")
    require(value_problems(source, score.reshape(-1), box))
    encoded = None if masks is None else image_masks(masks, count, source)
    return ImageRows(category_id, score.reshape(-1), box, encoded)


def image_number(image_id: Any, source: str = "") -> int:
    """The id of an image: an integer, or an array of one."""
    place = f"{source}: " if source else ""
    found = np.asarray(to_numpy(image_id), dtype=object)
    if found.size != 1:
        raise InputError(f"{place}image_id has {found.size} values, expected one")
    value = found.item()
    return whole_number(value, f"{place}image_id is {value!r}, expected an integer")


def image_boxes(
    boxes: Any, box_format: str, source: str, *, rounded: bool = False
) -> NDArray[np.float64]:
    """[n, 4] x, y, width, height of [n, 4] boxes in a format. Sizes are exact or, if rounded, as
    precise as the boxes, which is how the frameworks' own evaluators compute them."""
    given = to_numpy(boxes)
    box = floats(given, "box", source)
    if not box.size:
        return box.reshape(0, 4)
    if box.ndim != 2 or box.shape[1] != 4:
        raise InputError(f"{source}: box has shape {box.shape}, expected (n, 4)")
    if box_format == "xywh":
        return box
    if rounded and np.asarray(given).dtype.kind == "f":
        return from_format(box_format, np.asarray(given)).astype(np.float64)
    return from_format(box_format, box)


def image_masks(
    masks: Any, count: int, source: str, rows: NDArray[np.int64] | None = None
) -> Masks:
    """The masks of an image of `count` rows, or of some rows. For tensors, only these leave their
    device.

    masks: [n, height, width] bool or integers, or floats 0 and 1; a list of n such masks or of n
        COCO segmentations; or a `Masks` table
    """
    shape = getattr(masks, "shape", None)
    if shape is None and not isinstance(masks, Masks) and not isinstance(masks, Sequence):
        raise InputError(
            f"{source}: masks are a {type(masks).__name__}, expected a list or an array"
        )
    length = len(masks) if shape is None else int(shape[0])
    if length != count:
        raise InputError(f"{source}: {counted(length, 'mask')} for {counted(count, 'label')}")
    if isinstance(masks, Masks):
        return masks if rows is None else masks[rows]
    if shape is not None and len(shape) != 1:
        if rows is not None and len(rows) < count:
            masks = masks[rows.tolist()]
            count = len(rows)
        return masks_from_bitmaps(_pixels(masks), source) if count else no_masks(0)
    wanted = range(count) if rows is None else rows.tolist()
    chosen = {row: to_numpy(masks[row]) for row in wanted}
    if any(isinstance(mask, np.ndarray) and mask.ndim == 2 for mask in chosen.values()):
        return Masks.concatenate(
            [
                masks_from_bitmaps(_pixels(mask)[None], f"{source}, row {row:,}")
                for row, mask in chosen.items()
            ]
        )
    encoded = masks_from_segmentations([chosen.get(row) for row in range(count)], source)
    if rows is not None:
        encoded = encoded[rows]
    missing = np.flatnonzero(encoded.kind == NONE)
    if len(missing):
        raise InputError(f"{source}, row {wanted[missing[0]]:,}: the mask is missing")
    return encoded


def labels_to_ids(labels: Any, class_ids: ClassIds, source: str) -> NDArray[np.int64]:
    """[n] the class ids of labels."""
    label = whole_numbers(labels, "label", source)
    if class_ids is None:
        return label
    if isinstance(class_ids, Mapping):
        listed = label.tolist()
        unknown = [one for one in listed if one not in class_ids]
        if unknown:
            raise InputError(f"{source}: label {unknown[0]} has no class id")
        return np.array([class_ids[one] for one in listed], dtype=np.int64)
    ids = whole_numbers(class_ids, "class_ids", source)
    wrong = (label < 0) | (label >= len(ids))
    if wrong.any():
        raise InputError(
            f"{source}: label {label[wrong][0]}, expected 0 to {len(ids) - 1}, an index into the "
            "class ids"
        )
    return ids[label]


def detection_table(
    image_ids: Sequence[int], images: Sequence[ImageRows], source: str, *, from_masks: bool = False
) -> Detections:
    """The rows of some images, in their order. from_masks: boxes are computed from the masks."""
    filled = [one for one in images if len(one)]
    masks = [one.masks for one in filled if one.masks is not None]
    if masks and len(masks) < len(filled):
        raise InputError(f"{source}: some images have masks, others have none")
    return Detections.from_arrays(
        np.repeat(np.array(image_ids, dtype=np.int64), [len(one) for one in images]),
        concatenated([one.category_id for one in images], np.int64),
        concatenated([one.score for one in images], np.float64),
        None if from_masks else all_boxes(images),
        all_masks(images) if masks or from_masks else None,
        source,
    )


def all_boxes(images: Sequence[ImageRows]) -> NDArray[np.float64]:
    """The boxes of all rows."""
    return np.concatenate([np.zeros((0, 4)), *(one.box for one in images)])


def all_masks(images: Sequence[ImageRows]) -> Masks:
    """The masks of all rows."""
    found = [one.masks for one in images if one.masks is not None]
    return Masks.concatenate(found) if found else no_masks(0)


def concatenated(parts: Sequence[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    """One array of all parts, of which there may be none."""
    return np.concatenate([np.zeros(0, dtype=dtype), *parts])


def _pixels(masks: Any) -> NDArray[Any]:
    found = np.asarray(to_numpy(masks))
    return found != 0 if found.dtype.kind == "f" and np.isin(found, (0, 1)).all() else found
