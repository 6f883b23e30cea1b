"""A batch of detections from a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.files.box_formats import from_format, normalized, require_box_format
from lvdet.files.collect import FileReport
from lvdet.files.known_images import KnownImages
from lvdet.tables.masks import NONE, Masks
from lvdet.tables.values import Problem, value_problems

#: The key of a file's metadata that says how boxes are written.
_BOX_FORMAT = b"box_format"


@dataclass(frozen=True)
class Batch:
    """Consecutive detections; boxes as [N, 4] or as their four columns.

    at:  the file's row of the first
    row: [N] the file's row of each, where a row is an image
    """

    at: int
    image: NDArray[np.int64]
    category: NDArray[np.int64]
    score: NDArray[np.float64]
    box: NDArray[np.float64] | tuple[NDArray[np.float64], ...]
    masks: Masks | None
    may_have_masks: bool  # there are columns of them
    boxes_given: bool
    row: NDArray[np.int32] | None = None

    @property
    def report(self) -> FileReport:
        rows = len(self.score)
        with_masks = 0 if self.masks is None else int((self.masks.kind != NONE).sum())
        return FileReport([], rows, with_masks, 0 if self.boxes_given else rows)

    def add_to(self, collector: _native.Collector, source: str) -> Iterator[Problem]:
        """Adds the rows; returns the problems found."""
        masks = None if self.masks is None else self.masks.columns
        rows = (self.image, self.category, self.score)
        if isinstance(self.box, tuple):
            x, y, w, h = self.box
            usable = collector.add_sides(*rows, x, y, w, h, masks)
        else:
            usable = collector.add(*rows, self.box, masks)
        if usable:
            return
        box = np.stack(self.box, axis=1) if isinstance(self.box, tuple) else self.box
        for problem in value_problems(source, self.score, np.ascontiguousarray(box)):
            row = problem.row or 0
            if self.row is None:
                yield Problem(source, problem.what, self.at + row)
            else:
                yield Problem(source, problem.what, int(self.row[row]))


def box_format_of(schema: Any, source: str) -> str:
    """The box format of a file according to its metadata; x, y, width, height by default."""
    declared = (schema.metadata or {}).get(_BOX_FORMAT)
    if declared is None:
        return "xywh"
    name: str = declared.decode(errors="replace")
    try:
        require_box_format(name)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    return name


def plain_boxes(
    box: NDArray[np.float64],
    box_format: str,
    image: NDArray[np.int64],
    images: KnownImages,
    source: str,
) -> NDArray[np.float64]:
    """Boxes in a format as x, y, width, height in pixels; image: [N] the image id of each."""
    if box_format == "xywh" or not len(box):
        return box
    size = None
    if normalized(box_format):
        ids, place = np.unique(image, return_inverse=True)
        size = images.sizes(ids, source)[place]
    return np.ascontiguousarray(from_format(box_format, box, size))
