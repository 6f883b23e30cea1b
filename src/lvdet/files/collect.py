"""Collects the rows of any number of files in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.files.remote_path import InputPath
from lvdet.tables.detections import Detections
from lvdet.tables.drawn_images import WITH_BOXES, drawn_images
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.masks import NONE, Masks, no_masks
from lvdet.tables.problems import file_numbers, unknown_id
from lvdet.tables.results import Ranking, Results
from lvdet.tables.values import Problem, require, require_limit
from lvdet.threads import thread_count

#: Rows held before those that cannot be among the best are dropped for the first time: of image,
#: class and score alone, and with boxes.
ROOM, ROOM_WITH_BOXES = 1 << 24, 1 << 22
#: Bytes of masks held in memory; beyond them they are held in a temporary file.
MASK_BYTES = 1 << 29
#: Cells (images times classes) of which it is computed which of them count.
MOST_CELLS = 1 << 32


@dataclass(frozen=True, eq=False)
class Cap:
    """A limit on the rows of each class, or of each part of an image, while reading.

    part:   [C] int32, the part of each class of the annotations, -1 for none
    parts:  the number of parts of an image
    others: the part of classes that the annotations do not have, -1 for none
    floors: scores that so many rows of other files have, of the first classes, where known: rows
        with lower ones are not among the best
    """

    by_image: bool
    limit: int
    part: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    parts: int = 1
    others: int = 0
    floors: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        require_limit(self.limit)


@dataclass(frozen=True, eq=False)
class RowPlaces:
    """The positions of the detections of a file whose rows hold several detections each.

    begin: [R] int64, how many detections come before each row that has any
    row:   [R] int32, the file's row
    """

    begin: NDArray[np.int64]
    row: NDArray[np.int32]

    def of(self, detections: NDArray[Any]) -> NDArray[np.int32]:
        """The rows of detections, which are counted through the file."""
        return self.row[np.searchsorted(self.begin, detections, side="right") - 1]


@dataclass(frozen=True)
class FileReport:
    """What was found in one file."""

    problems: list[Problem]
    rows: int = 0
    rows_with_masks: int = 0
    rows_without_box: int = 0
    masks_skipped: bool = False  # though boxes are to be made from them
    damaged: bool = False  # what comes after is not known
    places: RowPlaces | None = None  # None where rows are detections


class MaskedFiles:
    """Ensures that, among files with rows, either all have masks or none."""

    def __init__(self) -> None:
        self._first: dict[bool, InputPath] = {}

    def note(self, path: InputPath, has_masks: bool) -> None:
        """Records a file; raises if an earlier one was different."""
        self._first.setdefault(has_masks, path)
        if len(self._first) == 2:
            raise InputError(f"{self._first[False]} has no masks, but {self._first[True]} does")


def new_collector(
    caps: Sequence[Cap] = (),
    gt: GroundTruth | None = None,
    *,
    every_box: bool = False,
    room: int | None = None,
) -> _native.Collector:
    """A collector of rows: of all rows, or of those that a cap can keep.

    If the annotations are known, images and classes are numbered as in them, and boxes and masks
    are kept only in cells that count, unless `every_box` is set. With caps, up to `room` rows are
    all kept.
    """
    none = np.zeros(0, dtype=np.int64)
    cells = None
    if (
        not every_box
        and gt is not None
        and gt.negative is not None
        and len(gt.images) * len(gt.categories) <= MOST_CELLS
    ):
        # Of some images every class is kept, to see whether classes are what they should be.
        classes = np.arange(len(gt.categories), dtype=np.int32)
        drawn = drawn_images(len(gt.images))[:WITH_BOXES].astype(np.int32)
        cells = (
            np.concatenate([gt.image, np.repeat(drawn, len(classes))]),
            np.concatenate([gt.category, np.tile(classes, len(drawn))]),
            gt.negative.offsets,
            gt.negative.category,
        )
    if room is None:
        room = ROOM_WITH_BOXES if cells is None else ROOM
    return _native.Collector(
        none if gt is None else gt.images.ids,
        none if gt is None else gt.categories.ids,
        [(cap.by_image, cap.limit, cap.part, cap.parts, cap.others, cap.floors) for cap in caps],
        cells,
        room,
        MASK_BYTES,
        _temporary_folder(),
        thread_count(),
    )


def _temporary_folder() -> str:
    """A folder that masks may be moved to. An unusable folder is only reported if they have to
    move."""
    named = [os.environ[name] for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)]
    usable = (folder for folder in (*named, "/tmp", "/var/tmp") if os.access(folder, os.W_OK))
    return next(usable, named[0] if named else "/tmp")


def add_table(table: Detections, collector: _native.Collector) -> FileReport:
    """Adds the rows of a table."""
    collector.add(
        table.image_ids[table.image],
        table.category_ids[table.category],
        table.score,
        table.box,
        None if table.masks is None else table.masks.columns,
    )
    rows = len(table)
    return FileReport(
        [],
        rows,
        0 if table.masks is None else int((table.masks.kind != NONE).sum()),
        0 if table.boxes_given else rows,
    )


def collected_detections(
    collector: _native.Collector, source: str, reports: Sequence[FileReport], *, masks: bool = True
) -> Detections:
    """The kept rows, each with box and mask; exactly the best ones if there are caps."""
    columns = collector.collected(True)
    if any(report.problems for report in reports):
        np.nan_to_num(columns["score"], copy=False)  # already reported; a table cannot hold it
    ranking = _ranking(columns, source)
    return _detections(columns, ranking, reports, masks)


def collected_results(
    collector: _native.Collector,
    source: str,
    reports: Sequence[FileReport],
    gt: GroundTruth,
    *,
    masks: bool = True,
) -> Results:
    """The kept rows as an evaluation needs them; may include rows beyond the caps."""
    columns = collector.collected(False)
    ranking = _ranking(columns, source)
    require(_unknown_images(gt, columns, source, _places(reports)))
    return Results(
        ranking,
        _detections(columns, ranking, reports, masks),
        columns["detail"],
        columns["total"],
        columns["per_image"],
        columns["per_class"],
    )


def _ranking(columns: dict[str, Any], source: str) -> Ranking:
    return Ranking(
        columns["image"],
        columns["category"],
        columns["score"],
        columns["image_ids"],
        columns["category_ids"],
        source,
    )


def _detections(
    columns: dict[str, Any], ranking: Ranking, reports: Sequence[FileReport], with_masks: bool
) -> Detections:
    """The rows with boxes."""
    image, category, score = columns["detailed"] or (
        ranking.image,
        ranking.category,
        ranking.score,
    )
    rows_in_all = sum(report.rows for report in reports)
    without = sum(report.rows_without_box for report in reports)
    count = len(columns["box"])
    masks = None if columns["masks"] is None else Masks(**columns["masks"])
    if masks is None and any(report.rows_with_masks for report in reports):
        masks = no_masks(count)  # none in a cell that counts
    if not with_masks and not without:
        masks = None
    # Where no row was dropped, rows of the ranking are rows of the file.
    file_row = columns["detail"] if columns["file_row"] is None else columns["file_row"]
    places = _places(reports)
    if places is not None:
        file_row = places.of(np.arange(count) if file_row is None else file_row)
    return Detections(
        image,
        category,
        score,
        columns["box"],
        ranking.image_ids,
        ranking.category_ids,
        masks,
        boxes_given=rows_in_all == 0 or without < rows_in_all,
        source=ranking.source,
        file_row=file_row,
    )


def _places(reports: Sequence[FileReport]) -> RowPlaces | None:
    """The row positions of a single file; for several files, rows are counted across all of
    them."""
    return reports[0].places if len(reports) == 1 else None


def _unknown_images(
    gt: GroundTruth, columns: dict[str, Any], source: str, places: RowPlaces | None
) -> Iterator[Problem]:
    """One problem per image that is not in the annotations, at the first of its rows."""
    unknown = range(len(gt.images), len(columns["image_ids"]))
    numbers = file_numbers(gt) if unknown else {}
    for index in unknown:
        image_id = int(columns["image_ids"][index])
        first = int(columns["first_of_image"][index])
        if places is not None:
            first = int(places.of(np.array([first]))[0])
        yield unknown_id(
            source,
            gt.source,
            "image_id",
            image_id,
            columns["per_image"][index],
            first,
            numbers.get(image_id, ""),
        )
