"""Everything that can be wrong with the tables, found at once."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.masks import RLE, Masks
from lvdet.tables.results import Ranking
from lvdet.tables.values import Problem, more_problems, number, numbers


def unlisted(source: str, columns: dict[str, Any]) -> list[Problem]:
    """One problem for everything that a native reader counted but did not keep."""
    more = columns["problem_count"] - len(columns["problems"])
    return [more_problems(source, more)] if more else []


def ground_truth_problems(
    gt: GroundTruth, rows: NDArray[np.int64] | None = None
) -> Iterator[Problem]:
    """Annotation values that no evaluation can use.

    rows: [M] the rows of the file, where some were left out of the table.
    """
    at = np.arange(len(gt)) if rows is None else rows
    duplicated = _duplicates(gt.id)
    x, y, w, h = gt.box.T  # column by column: NumPy reduces short rows slowly
    finite = np.logical_and.reduce([np.isfinite(side) for side in (x, y, w, h, gt.area)])
    negative = (w < 0) | (h < 0) | (gt.area < 0)
    for row in np.flatnonzero(duplicated | ~finite | negative):
        box = numbers(gt.box[row])
        if not finite[row]:
            what = f"bbox is {box}, area {number(gt.area[row])}, expected finite numbers"
        elif negative[row]:
            what = f"bbox is {box}, area {number(gt.area[row])}, expected non-negative sizes"
        else:
            what = f"annotation id {gt.id[row]} occurs more than once"
        yield Problem(gt.source, what, int(at[row]), table="annotation")
    if gt.masks is not None:
        for place, what in _wrong_sizes(gt, gt.masks, gt.image, "its image"):
            yield Problem(gt.source, what, int(at[place]), table="annotation")


def pair_problems(
    gt: GroundTruth, detections: Detections, *, reported: Set[int] = frozenset()
) -> Iterator[Problem]:
    """Detections that do not belong to these annotations: unknown images, wrong mask sizes.

    reported: rows whose problems were already reported; their ids may be placeholders.
    """
    image = image_rows(gt, detections)
    unknown = image < 0
    yield from unknown_ids(
        gt, detections, "image_id", detections.image, detections.image_ids, unknown, reported
    )
    if detections.masks is None or unknown.any():
        return
    rows = detections.file_row
    for row, what in _wrong_sizes(gt, detections.masks, image[detections.image], "image"):
        yield Problem(detections.source, what, row if rows is None else int(rows[row]))


def _wrong_sizes(
    gt: GroundTruth, masks: Masks, image: NDArray[np.int32], named: str
) -> Iterator[tuple[int, str]]:
    """Rows whose mask differs in size from its image, with the message for each."""
    height, width = gt.images.height[image], gt.images.width[image]
    wrong = (masks.kind == RLE) & ((masks.height != height) | (masks.width != width))
    for row in np.flatnonzero(wrong).tolist():
        yield (
            row,
            (
                f"mask is {masks.height[row]} x {masks.width[row]}, but {named} "
                f"{gt.images.ids[image[row]]} is {height[row]} x {width[row]}"
            ),
        )


def unknown_ids(
    gt: GroundTruth,
    detections: Detections,
    name: str,
    column: NDArray[np.int32],
    ids: NDArray[np.int64],
    unknown: NDArray[np.bool_],
    reported: Set[int],
) -> Iterator[Problem]:
    """One problem per id that is not in the annotations, at the first of its rows."""
    if not unknown.any():
        return
    rows = np.flatnonzero(unknown[column])
    if reported:
        rows = rows[~np.isin(rows, np.fromiter(reported, dtype=np.int64))]
    found, first, counts = np.unique(column[rows], return_index=True, return_counts=True)
    numbers = file_numbers(gt) if name == "image_id" else {}
    for index, row, count in sorted(
        zip(found.tolist(), rows[first].tolist(), counts.tolist(), strict=True), key=lambda x: x[1]
    ):
        if detections.file_row is not None:
            row = int(detections.file_row[row])
        value, hint = int(ids[index]), numbers.get(int(ids[index]), "")
        yield unknown_id(detections.source, gt.source, name, value, count, row, hint)


def unknown_id(
    source: str, truth: str, name: str, value: int, count: int, row: int, hint: str
) -> Problem:
    """The problem of an id that is not in the annotations."""
    detection = f"{count:,} detection{'' if count == 1 else 's'}"
    return Problem(source, f"{name} {value} is not in {truth} ({detection}){hint}", int(row))


def file_numbers(gt: GroundTruth) -> dict[int, str]:
    """Hints for ids that are numbers of file names, as Ultralytics writes them: by number, which
    image has it."""
    found = {}
    for image_id, name in zip(gt.images.ids.tolist(), gt.images.file_names, strict=True):
        stem = name.rpartition("/")[2].partition(".")[0]
        if stem.isascii() and stem.isdigit():
            found[int(stem)] = f"; image {image_id} is {name}: write image ids, not file names"
    return found


def image_rows(gt: GroundTruth, detections: Detections | Ranking) -> NDArray[np.int32]:
    """Row of `gt.images` for each of the detections' image ids, -1 where unknown."""
    return rows_of(gt.images.ids, detections.image_ids)


def category_rows(gt: GroundTruth, detections: Detections | Ranking) -> NDArray[np.int32]:
    """Row of `gt.categories` for each of the detections' category ids, -1 where unknown."""
    return rows_of(gt.categories.ids, detections.category_ids)


def rows_of(ids: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int32]:
    """The index of each wanted id in ascending `ids`, -1 if it is not there."""
    if len(ids) == 0:
        return np.full(len(wanted), -1, dtype=np.int32)
    if len(wanted) > len(ids) and ids[0] >= 0 and ids[-1] < 1 << 22:
        # A table of all ids up to the highest is faster than a search for each.
        table = np.full(int(ids[-1]) + 2, -1, dtype=np.int32)
        table[ids] = np.arange(len(ids), dtype=np.int32)
        return table[np.where((wanted >= 0) & (wanted <= ids[-1]), wanted, len(table) - 1)]
    rows = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[rows] == wanted, rows, -1).astype(np.int32)


def _duplicates(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """True for every row whose id occurred before."""
    if (ids[1:] > ids[:-1]).all():
        return np.zeros(len(ids), dtype=bool)
    repeated = np.ones(len(ids), dtype=bool)
    repeated[np.unique(ids, return_index=True)[1]] = False
    return repeated
