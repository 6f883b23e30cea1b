"""Reads annotation files in LVIS or COCO format."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.progress import Update
from lvdet.training.data.dataset import Dataset
from lvdet.training.data.image_paths import candidates, find_images, leaves
from lvdet.training.data.json_arrays import read_arrays
from lvdet.training.data.shapes import Shapes, ShapesBuilder

#: Boxes with a shorter side, in pixels, are left out.
SHORTEST = 1.0


def read_dataset(
    annotations: Path, images: Path, *, name: str = "train", update: Update | None = None
) -> Dataset:
    """The dataset of an annotation file and the folder that its images are in.

    Left out are annotations of crowds, and those whose box has, inside the image, a side of less
    than one pixel. Counts are of what is left; those in the file are not read.
    """
    objects, pictures, classes = _Annotations(), _Images(), _Categories()
    add: dict[str, Callable[[dict[str, Any]], str]] = {
        "annotations": objects.add,
        "images": pictures.add,
        "categories": classes.add,
    }
    rows = dict.fromkeys(add, 0)
    for kind, record in read_arrays(annotations, list(add), update):
        problem = add[kind](record) if isinstance(record, dict) else "is not an object"
        if problem:
            raise InputError(f"{annotations}: {kind}, number {rows[kind]}: {problem}")
        rows[kind] += 1
    return _build(name, annotations, Path(images), objects, pictures, classes)


class _Annotations:
    """The columns of the annotations, crowds left out."""

    def __init__(self) -> None:
        self.number = array("q")
        self.image = array("q")
        self.category = array("q")
        self.box = array("d")
        self.shapes = ShapesBuilder()
        self._read = 0

    def add(self, record: dict[str, Any]) -> str:
        self._read += 1
        if record.get("iscrowd"):
            return ""
        try:
            image, category, box = record["image_id"], record["category_id"], record["bbox"]
        except KeyError as error:
            return f"has no {error}"
        if type(image) is not int or type(category) is not int:
            return "'image_id' and 'category_id' must be whole numbers"
        try:
            if len(box) != 4:
                return f"bbox has {len(box)} numbers, expected 4 [x, y, w, h]"
            self.box.extend(box)
            self.image.append(image)
            self.category.append(category)
        except (TypeError, OverflowError):
            return "bbox or an id is not a number that can be used"
        self.number.append(self._read - 1)
        return self.shapes.add(record.get("segmentation"))


class _Images:
    def __init__(self) -> None:
        self.ids = array("q")
        self.size = array("q")
        self.names: list[list[str]] = []

    def add(self, record: dict[str, Any]) -> str:
        for key in ("id", "height", "width"):
            if type(record.get(key)) is not int:
                return f"has no '{key}' that is a whole number"
        if not (0 < record["height"] < 1 << 20 and 0 < record["width"] < 1 << 20):
            return f"is {record['width']} x {record['height']} pixels"
        names = candidates(record)
        if not names:
            return "has neither 'file_name' nor 'coco_url'"
        for name in names:
            if leaves(name):
                return f"file name {name!r} leads out of the folder of images"
        try:
            self.ids.append(record["id"])
        except OverflowError:
            return "'id' is too large"
        self.size.extend((record["height"], record["width"]))
        self.names.append(names)
        return ""


class _Categories:
    def __init__(self) -> None:
        self.ids = array("q")
        self.names: list[str] = []
        self.frequency: list[str] = []

    def add(self, record: dict[str, Any]) -> str:
        if type(record.get("id")) is not int or not isinstance(record.get("name"), str):
            return "has no 'id' that is a whole number, or no 'name'"
        try:
            self.ids.append(record["id"])
        except OverflowError:
            return "'id' is too large"
        self.names.append(record["name"])
        if isinstance(record.get("frequency"), str):
            self.frequency.append(record["frequency"])
        return ""


def _build(
    name: str,
    path: Path,
    folder: Path,
    annotations: _Annotations,
    images: _Images,
    categories: _Categories,
) -> Dataset:
    """The dataset of what was read; what does not fit together is an InputError."""
    image_ids, size = _column(images.ids), _column(images.size).reshape(-1, 2)
    unordered = _column(categories.ids)
    for kind, ids in (("images", image_ids), ("categories", unordered)):
        if not len(ids):
            raise InputError(f"{path}: there are no {kind}")
        if len(np.unique(ids)) < len(ids):
            raise InputError(f"{path}: two of the {kind} have the same id")
    order = np.argsort(unordered)
    number = _column(annotations.number)
    image = _rows(path, number, _column(annotations.image), image_ids, "image")
    label = _rows(path, number, _column(annotations.category), unordered[order], "category")
    shapes = _checked_shapes(path, number, annotations.shapes, size[image])
    box = _clipped(path, number, np.frombuffer(annotations.box).reshape(-1, 4), size[image])

    kept = np.flatnonzero(np.all(box[:, 2:] - box[:, :2] >= SHORTEST, axis=1))
    kept = kept[np.argsort(image[kept], kind="stable")]
    found = [os.fsencode(file) for file in find_images(folder, images.names)]
    return Dataset(
        name=name,
        folder=folder,
        image_ids=image_ids,
        size=size,
        category_ids=unordered[order],
        category_names=[categories.names[row] for row in order],
        frequency=(
            [categories.frequency[row] for row in order]
            if len(categories.frequency) == len(order)
            else None
        ),
        first=np.append(0, np.cumsum(np.bincount(image[kept], minlength=len(image_ids)))),
        label=label[kept].astype(np.int32),
        box=box[kept].astype(np.float32),
        shapes=shapes[kept],
        file_names=np.frombuffer(b"".join(found), dtype=np.uint8),
        file_ends=np.cumsum([len(file) for file in found]),
    )


def _column(values: array[int]) -> NDArray[np.int64]:
    return np.frombuffer(values, dtype=np.int64)


def _rows(
    path: Path, number: NDArray[np.int64], ids: NDArray[np.int64], known: NDArray[np.int64], of: str
) -> NDArray[np.int64]:
    """The rows of ids among the known ones."""
    order = np.argsort(known)
    place = np.searchsorted(known, ids, sorter=order).clip(max=len(known) - 1)
    rows: NDArray[np.int64] = order[place]
    wrong = np.flatnonzero(known[rows] != ids)
    if len(wrong):
        raise InputError(
            f"{path}: annotations, number {number[wrong[0]]}: there is no {of} {ids[wrong[0]]}"
        )
    return rows


def _checked_shapes(
    path: Path, number: NDArray[np.int64], builder: ShapesBuilder, size: NDArray[np.int64]
) -> Shapes:
    shapes = builder.build()
    wrong = np.flatnonzero(~np.isfinite(shapes.coordinates))
    if len(wrong):
        part = np.searchsorted(shapes.part_ends, wrong[0], side="right")
        row = np.searchsorted(shapes.parts[:, 1], part, side="right")
        raise InputError(
            f"{path}: annotations, number {number[row]}: a polygon's number is infinite or none"
        )
    given = builder.sizes()
    wrong = np.flatnonzero(np.any(given[:, 1:] != size[given[:, 0]], axis=1))
    if len(wrong):
        row, height, width = given[wrong[0]]
        raise InputError(
            f"{path}: annotations, number {number[row]}: its mask is {width} x {height} pixels, "
            f"its image {size[row, 1]} x {size[row, 0]}"
        )
    return shapes


def _clipped(
    path: Path, number: NDArray[np.int64], box: NDArray[np.float64], size: NDArray[np.int64]
) -> NDArray[np.float64]:
    """x, y, w, h to x1, y1, x2, y2 inside the images."""
    wrong = np.flatnonzero(~np.isfinite(box).all(axis=1))
    if len(wrong):
        raise InputError(
            f"{path}: annotations, number {number[wrong[0]]}: a number of bbox is infinite or none"
        )
    corners = np.concatenate((box[:, :2], box[:, :2] + box[:, 2:]), axis=1)
    limit = np.concatenate((size[:, ::-1], size[:, ::-1]), axis=1)
    return corners.clip(0, limit)
