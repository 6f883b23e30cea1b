"""Parquet files with one row per image and its detections in lists.

Columns: image_id, scores, labels (class ids), boxes (lists of four numbers, or one list of four
numbers per box), and optionally segmentations (lists of {size, counts}). The names of the columns
of single detections, `score`, `category_id`, `bbox` and `segmentation`, serve as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.known_images import KnownImages
from lvdet.files.parquet_batch import Batch, box_format_of, plain_boxes
from lvdet.files.parquet_columns import (
    first_not_whole,
    is_list,
    is_number,
    read_images,
    read_values,
)
from lvdet.files.parquet_layout import Group
from lvdet.files.records import masks_from_segmentations
from lvdet.tables.detections import masks_to_boxes
from lvdet.tables.masks import LARGEST_MASK, NONE, Masks

#: Images decoded at a time at most, however few detections most of them have.
IMAGES = 512
_SCORES = ("scores", "score")
_LABELS = ("labels", "category_ids", "category_id")
_BOXES = ("boxes", "bboxes", "bbox")
#: What a column of masks may be called.
MASK_LISTS = ("segmentations", "masks", "segmentation")


@dataclass(frozen=True)
class ListColumns:
    """The columns that hold the detections of each image, and the box format."""

    scores: str
    labels: str
    boxes: str | None
    masks: str | None
    box_format: str

    @staticmethod
    def of(schema: Any, source: str, *, masks: bool) -> ListColumns | None:
        """The columns; None for a file with one row per detection."""
        scores = _first(schema, _SCORES)
        if scores is None or not is_list(schema.field(scores).type):
            return None
        for names, what in ((("image_id",), "'image_id'"), (_LABELS, "'labels'")):
            if _first(schema, names) is None:
                raise InputError(f"{source}: no column {what}, found {sorted(schema.names)}")
        boxes, masked = _first(schema, _BOXES), _first(schema, MASK_LISTS)
        if boxes is None and masked is None:
            raise InputError(f"{source}: no columns for boxes ('boxes') or masks ('segmentations')")
        return ListColumns(
            scores,
            str(_first(schema, _LABELS)),
            boxes,
            masked if masks or boxes is None else None,
            box_format_of(schema, source),
        )

    @property
    def names(self) -> list[str]:
        every = ("image_id", self.scores, self.labels, self.boxes, self.masks)
        return [name for name in every if name is not None]

    def count(self, layout: list[Group]) -> int:
        """The number of detections in the file, or slightly more."""
        return sum(group.values(self.scores) for group in layout)

    def images_at_a_time(
        self, layout: list[Group], source: str, most: int, most_masks: int, mask_bytes: int
    ) -> int:
        """The number of rows to decode at a time, for about `most` detections; if there are masks,
        also for about `most_masks` bytes of them."""
        rows = IMAGES
        for number, group in enumerate(layout):
            images = max(group.rows, 1)
            count = max(group.values(self.scores), 1)
            rows = min(rows, most * images // count)
            if self.masks is None:
                continue
            size = max(group.size([self.masks]), 1)
            if size // count > LARGEST_MASK:
                raise InputError(
                    f"{source}: masks of row group {number} take {size // count:,} bytes per "
                    f"detection, expected at most {LARGEST_MASK:,}"
                )
            rows = min(rows, most_masks * images // count, mask_bytes * images // size)
        return max(rows, 1)

    def batches(
        self, decoded: Any, source: str, at: int, images: KnownImages, most: int
    ) -> Iterator[Batch]:
        """The detections of some rows, in batches of up to `most`."""
        image = read_images(decoded.column("image_id"), source, at, images)
        score, counts = _numbers(decoded, self.scores, source, at)
        labels, lengths = _numbers(decoded, self.labels, source, at)
        self._require_equal(self.labels, lengths, counts, source, at)
        row = np.repeat(np.arange(at, at + len(image), dtype=np.int32), counts)
        image = np.repeat(image, counts)
        wrong = first_not_whole(labels, np.iinfo(np.int64))
        if wrong is not None:
            raise InputError(
                f"{source}, row {row[wrong]:,}: an item of {self.labels!r} is {labels[wrong]}, "
                "expected an integer"
            )
        masks = None
        if self.masks is not None:
            masks = self._read_masks(decoded, counts, source, at)
        if self.boxes is not None:
            box = self._read_boxes(decoded, counts, source, at)
            box = plain_boxes(box, self.box_format, image, images, source)
        else:
            missing = np.arange(len(row)) if masks is None else np.flatnonzero(masks.kind == NONE)
            if len(missing):
                raise InputError(
                    f"{source}, row {row[missing[0]]:,}: a detection has neither box nor mask"
                )
            box = np.zeros((0, 4)) if masks is None else masks_to_boxes(masks)
        category = np.ascontiguousarray(labels, dtype=np.int64)
        scores = np.ascontiguousarray(score, dtype=np.float64)
        for begin in range(0, len(row), most):
            part = slice(begin, begin + most)
            yield Batch(
                int(row[begin]),
                image[part],
                category[part],
                scores[part],
                box[part],
                None if masks is None else masks[np.arange(len(row))[part]],
                self.masks is not None,
                self.boxes is not None,
                row[part],
            )

    def _require_equal(
        self,
        name: str,
        lengths: NDArray[np.int64],
        counts: NDArray[np.int64],
        source: str,
        at: int,
    ) -> None:
        """Raises for a list whose length differs from the row's scores."""
        wrong = np.flatnonzero(lengths != counts)
        if len(wrong):
            row = int(wrong[0])
            raise InputError(
                f"{source}, row {at + row:,}: {name!r} has {lengths[row]:,} items, but "
                f"{self.scores!r} has {counts[row]:,}"
            )

    def _read_boxes(
        self, decoded: Any, counts: NDArray[np.int64], source: str, at: int
    ) -> NDArray[np.float64]:
        """[N, 4] numbers, from lists of four or from one list with four per detection."""
        name = str(self.boxes)
        items, lengths = _items(decoded.column(name), name, source, at)
        if is_list(items.type):
            self._require_equal(name, lengths, counts, source, at)
            row = np.repeat(np.arange(len(counts)), counts)
            _require_filled(items, name, row, source, at)
            sides = read_values(items.value_lengths())
            wrong = np.flatnonzero(sides != 4)
            if len(wrong):
                raise InputError(
                    f"{source}, row {at + row[wrong[0]]:,}: an item of {name!r} has "
                    f"{sides[wrong[0]]} numbers, expected 4"
                )
            items = items.flatten()
        else:
            wrong = np.flatnonzero(lengths != 4 * counts)
            if len(wrong):
                row = wrong[0]
                raise InputError(
                    f"{source}, row {at + row:,}: {name!r} has {lengths[row]:,} numbers, expected "
                    f"4 for each of {counts[row]:,} scores"
                )
        values = _plain_numbers(
            items, name, np.repeat(np.arange(len(counts)), 4 * counts), source, at
        )
        return np.ascontiguousarray(values, dtype=np.float64).reshape(-1, 4)

    def _read_masks(
        self, decoded: Any, counts: NDArray[np.int64], source: str, at: int
    ) -> Masks | None:
        """A mask for each detection; None if there are none. A row may be null."""
        name = str(self.masks)
        column = decoded.column(name)
        if not is_list(column.type):
            raise InputError(f"{source}: column {name!r} has type {column.type}, expected lists")
        found: list[Any] = []
        for row, (masks, count) in enumerate(zip(column.to_pylist(), counts, strict=True)):
            masks = [None] * int(count) if masks is None else masks
            if len(masks) != count:
                length = np.array([len(masks)])
                self._require_equal(name, length, counts[row : row + 1], source, at + row)
            try:
                masks_from_segmentations(masks, source)
            except InputError as error:
                what = str(error).removeprefix(source).partition(": ")[2]
                raise InputError(f"{source}, row {at + row:,}: {what}") from None
            found += masks
        masks = masks_from_segmentations(found, source)
        return masks if masks.kind.any() else None


def _first(schema: Any, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in schema.names), None)


def _items(column: Any, name: str, source: str, at: int) -> tuple[Any, NDArray[np.int64]]:
    """All items of a list column, and the number in each row."""
    if not is_list(column.type):
        raise InputError(f"{source}: column {name!r} has type {column.type}, expected lists")
    if column.null_count:
        row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
        raise InputError(f"{source}, row {at + row:,}: {name!r} is null, expected a list")
    return column.flatten(), read_values(column.value_lengths()).astype(np.int64)


def _numbers(
    decoded: Any, name: str, source: str, at: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The numbers of a list column, and how many each row has."""
    items, counts = _items(decoded.column(name), name, source, at)
    row = np.repeat(np.arange(len(counts)), counts)
    return _plain_numbers(items, name, row, source, at), counts


def _plain_numbers(
    items: Any, name: str, row: NDArray[np.int64], source: str, at: int
) -> NDArray[Any]:
    """Numbers without nulls; row: the row of each, starting at `at`."""
    import pyarrow as pa

    if not len(items) and pa.types.is_null(items.type):  # all lists of the file are empty
        return np.zeros(0)
    _require_filled(items, name, row, source, at)
    if not is_number(items.type):
        raise InputError(
            f"{source}: column {name!r} has items of type {items.type}, expected numbers"
        )
    return read_values(items)


def _require_filled(items: Any, name: str, row: NDArray[np.int64], source: str, at: int) -> None:
    if items.null_count:
        place = int(np.flatnonzero(np.asarray(items.is_null()))[0])
        raise InputError(f"{source}, row {at + row[place]:,}: an item of {name!r} is null")
