"""What can be wrong with the tables, found all at once."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.masks import RLE
from lvdet.threads import thread_count


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where. Rows count from 0."""

    source: str
    what: str
    row: int | None = None
    byte: int | None = None
    table: str = ""

    def __str__(self) -> str:
        place = self.source
        if self.row is not None:
            place += f", {self.table + ' ' if self.table else ''}row {self.row:,}"
        if self.byte is not None:
            place += f", byte {self.byte:,}"
        return f"{place}: {self.what}" if place else self.what


def require(problems: Iterator[Problem]) -> None:
    """Raises the first problem, if there is one."""
    for problem in problems:
        raise InputError(str(problem))


def unlisted(source: str, columns: dict[str, Any]) -> list[Problem]:
    """One problem for all that a native reader counted and did not keep."""
    more = columns["problem_count"] - len(columns["problems"])
    return [Problem(source, f"and {more:,} more problems like these")] if more else []


def detection_problems(detections: Detections) -> Iterator[Problem]:
    """Scores and boxes that are not finite, and negative sizes."""
    first = _native.first_bad_row(detections.score, detections.box, thread_count())
    if first < 0:
        return
    score, box = detections.score[first:], detections.box[first:]
    finite = np.isfinite(box)
    for row in np.flatnonzero(
        ~(np.isfinite(score) & finite.all(axis=1)) | (box[:, 2:] < 0).any(axis=1)
    ):
        if not np.isfinite(score[row]):
            what = f"score is {_number(score[row])}, expected a finite number"
        elif not finite[row].all():
            what = f"bbox is {_numbers(box[row])}, expected finite numbers"
        else:
            what = f"bbox is {_numbers(box[row])}, expected a width and height of 0 or more"
        yield Problem(detections.source, what, int(first + row))


def ground_truth_problems(gt: GroundTruth) -> Iterator[Problem]:
    """Values of the annotations that no evaluation can use."""
    duplicated = _duplicates(gt.id)
    finite = np.isfinite(gt.box).all(axis=1) & np.isfinite(gt.area)
    negative = (gt.box[:, 2:] < 0).any(axis=1) | (gt.area < 0)
    for row in np.flatnonzero(duplicated | ~finite | negative):
        box = _numbers(gt.box[row])
        if not finite[row]:
            what = f"bbox is {box}, area {_number(gt.area[row])}, expected finite numbers"
        elif negative[row]:
            what = f"bbox is {box}, area {_number(gt.area[row])}, expected sizes of 0 or more"
        else:
            what = f"annotation id {gt.id[row]} occurs more than once"
        yield Problem(gt.source, what, int(row), table="annotation")
    if gt.masks is not None:
        height, width = gt.images.height[gt.image], gt.images.width[gt.image]
        wrong = (gt.masks.kind == RLE) & ((gt.masks.height != height) | (gt.masks.width != width))
        for row in np.flatnonzero(wrong):
            yield Problem(
                gt.source,
                f"mask is {gt.masks.height[row]} x {gt.masks.width[row]}, but its image "
                f"{gt.images.ids[gt.image[row]]} is {height[row]} x {width[row]}",
                int(row),
                table="annotation",
            )


def pair_problems(
    gt: GroundTruth, detections: Detections, *, told: Set[int] = frozenset()
) -> Iterator[Problem]:
    """Detections that do not belong to these annotations: unknown images, wrong mask sizes.

    told: rows of which something wrong was told before; their ids may be made up.
    """
    image = image_rows(gt, detections)
    unknown = np.flatnonzero(image < 0)
    for index in unknown:
        yield from unknown_id(
            detections, "image_id", detections.image_ids[index], detections.image == index, gt, told
        )
    if detections.masks is None or len(unknown):
        return
    masks = detections.masks
    at = image[detections.image]
    height, width = gt.images.height[at], gt.images.width[at]
    wrong = (masks.kind == RLE) & ((masks.height != height) | (masks.width != width))
    for row in np.flatnonzero(wrong):
        yield Problem(
            detections.source,
            f"mask is {masks.height[row]} x {masks.width[row]}, but image "
            f"{gt.images.ids[at[row]]} is {height[row]} x {width[row]}",
            int(row),
        )


def unknown_id(
    detections: Detections,
    name: str,
    value: int,
    member: NDArray[np.bool_],
    gt: GroundTruth,
    told: Set[int],
) -> Iterator[Problem]:
    """The problem of an id that the annotations do not have, at the first of its rows."""
    rows = [row for row in np.flatnonzero(member).tolist() if row not in told]
    if rows:
        count = f"{len(rows):,} detection{'s' * (len(rows) != 1)}"
        yield Problem(detections.source, f"{name} {value} is not in {gt.source} ({count})", rows[0])


def image_rows(gt: GroundTruth, detections: Detections) -> NDArray[np.int32]:
    """Row of `gt.images` for each of the detections' image ids, -1 where unknown."""
    return rows_of(gt.images.ids, detections.image_ids)


def category_rows(gt: GroundTruth, detections: Detections) -> NDArray[np.int32]:
    """Row of `gt.categories` for each of the detections' category ids, -1 where unknown."""
    return rows_of(gt.categories.ids, detections.category_ids)


def rows_of(ids: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int32]:
    """Where each wanted id stands in ascending `ids`, -1 where it does not."""
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
    """True for every row whose id came before."""
    if (ids[1:] > ids[:-1]).all():
        return np.zeros(len(ids), dtype=bool)
    repeated = np.ones(len(ids), dtype=bool)
    repeated[np.unique(ids, return_index=True)[1]] = False
    return repeated


def _number(value: float) -> str:
    return f"{value:g}"


def _numbers(values: NDArray[np.float64]) -> str:
    return "[" + ", ".join(_number(value) for value in values) + "]"
