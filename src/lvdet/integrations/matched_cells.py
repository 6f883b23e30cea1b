"""Matches detections with objects within each image and class, and answers queries as the reference
tools do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.integrations.annotation_columns import Annotation, boxes, column, image_sizes, masks
from lvdet.integrations.curve_tables import CurveTables, curve_tables
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.outcomes import Outcomes
from lvdet.threads import thread_count

#: Ranges of area that one run of the matcher takes.
_RANGES_AT_ONCE = 8

Floats = NDArray[np.float64]
Rows = NDArray[np.int32]
#: Annotations by image id and class id, in the order in which equal ones are taken.
Cells: TypeAlias = Mapping[tuple[Any, Any], Sequence[Annotation]]


@dataclass(frozen=True)
class Question:
    """What is compared, and how.

    image_ids:   by rising id, the order of equal scores
    images:      records of the images, for the sizes of masks
    use_classes: whether a detection can match objects of its class alone
    crowds:      whether `iscrowd` objects take any number of detections
    not_exhaustive: classes of each image whose unmatched detections do not count
    """

    objects: Cells
    detections: Cells
    image_ids: Sequence[Any]
    class_ids: Sequence[Any]
    images: Mapping[Any, Mapping[str, Any]]
    use_classes: bool
    iou: str
    thresholds: Sequence[float]
    area_ranges: Sequence[Sequence[float]]
    crowds: bool = False
    not_exhaustive: Mapping[Any, Sequence[Any]] | None = None


@dataclass(frozen=True)
class CellRecord:
    """What matching says of one image and class in one range of area: D detections by descending
    score, G objects, those that are ignored last; T thresholds."""

    detections: list[Annotation]
    objects: list[Annotation]
    detection_matches: Floats  # [T, D] id of the object, or 0
    object_matches: Floats  # [T, G] id of the detection, or 0
    detection_ignored: NDArray[np.bool_]  # [T, D]
    object_ignored: NDArray[Any]  # [G] 0 or 1


@dataclass(frozen=True)
class _MatchTable:
    """The records of one range of area side by side; `order` are the objects' rows."""

    order: NDArray[np.int64]
    detection_matches: Floats
    object_matches: Floats
    detection_ignored: NDArray[np.bool_]
    object_ignored: NDArray[np.int64]


class MatchedCells:
    """The match of a question, without a limit on detections."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.classes = len(question.class_ids) if question.use_classes else 1
        self.image_places = {one: place for place, one in enumerate(question.image_ids)}
        self.class_places = {one: place for place, one in enumerate(question.class_ids)}
        self._thresholds = MatchOptions(thresholds=question.thresholds).levels
        self.objects, object_image, object_class = self._rows(question.objects)
        self.detections, found_image, found_class = self._rows(question.detections)
        self._load((object_image, object_class), (found_image, found_class))
        first, *_ = self._matched = [self._match(part) for part in self._ranges]
        self._detection, self._offsets = first["detection"], first["category_offsets"]
        # The rows by image, class and rank, and the cells of these and of objects in that order.
        self._position = first["position"]
        self._ranked = np.empty_like(self._position)
        self._ranked[self._position] = np.arange(len(self._ranked), dtype=np.int32)
        rows = self._detection[self._ranked]
        self._cell = self._cells(found_image[rows], found_class[rows])
        self._cell_of_object = self._cells(object_image, object_class)
        self._object_cell = np.sort(self._cell_of_object)
        self._tables: dict[tuple[int, int | None], _MatchTable] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return MatchedCells, (self.question,)  # the kernels' columns are made again

    def tables(self, area: int, recalls: ArrayLike, limit: int | None = None) -> CurveTables:
        """Precision at the recall levels, for each class in an area range (by index), with a limit
        on detections per image and class."""
        outcomes, truth, scope = self._in_range(area)
        return curve_tables(
            outcomes,
            len(self._thresholds),
            self._offsets,
            np.ascontiguousarray(truth),
            recalls,
            self._score[self._detection],
            scope=scope,
            keep=None if limit is None else self._ranks < limit,
        )

    def ranking(
        self, place: int, area: int
    ) -> tuple[list[Annotation], NDArray[np.bool_], NDArray[np.bool_]] | None:
        """The detections of a class by descending score, and [T, N] which of them are matched and
        not counted; None if nothing is to be found."""
        outcomes, truth, scope = self._in_range(area)
        if truth[place] == 0:
            return None
        rows = slice(self._offsets[place], self._offsets[place + 1])
        flags = [outcomes.flags(t, scope) for t in range(len(self._thresholds))]
        matched = np.array([one[rows] for one, _ in flags])
        ignored = np.array([one[rows] for _, one in flags])
        return [self.detections[row] for row in self._detection[rows]], matched, ignored

    def record(
        self, image: int, place: int, area: int, limit: int | None = None
    ) -> CellRecord | None:
        """The record of an image and class in an area range, all by index; None if it is empty."""
        cell = image * self.classes + place
        if cell not in self._spans:
            return None
        first, last, begin, end = self._spans[cell]
        if limit is not None:
            last = min(first + limit, last)
        if (area, limit) not in self._tables:
            self._tables[area, limit] = self._match_table(area, limit)
        table = self._tables[area, limit]
        return CellRecord(
            [self.detections[row] for row in self._detection[self._ranked[first:last]]],
            [self.objects[row] for row in table.order[begin:end]],
            table.detection_matches[:, first:last].copy(),
            table.object_matches[:, begin:end].copy(),
            table.detection_ignored[:, first:last].copy(),
            table.object_ignored[begin:end].copy(),
        )

    def _match_table(self, area: int, limit: int | None) -> _MatchTable:
        """What the records of a range of area are parts of."""
        outcomes, _, scope = self._in_range(area)
        count, hits = len(self._thresholds), outcomes.hits
        low, high = self.question.area_ranges[area]
        ignored = self._ignored | (self._object_area < low) | (self._object_area > high)
        order = np.lexsort((ignored, self._cell_of_object))
        column_of = np.empty_like(order)
        column_of[order] = np.arange(len(order))

        left_out = np.repeat(outcomes.wrong[None, self._ranked] >> scope & 1 == 0, count, axis=0)
        bits = np.unpackbits(outcomes.bits[:, scope, 1], axis=1, count=count, bitorder="little")
        left_out[:, self._position[hits]] = bits.T
        partners = self._partners[area // _RANGES_AT_ONCE][:, scope].copy()
        if limit is not None:
            partners[self._ranks[hits] >= limit] = -1
        # By image, class and rank: of the detections that a crowd takes, the last one is noted.
        ranked = np.argsort(self._position[hits])
        hit, t = np.nonzero(partners[ranked] >= 0)
        rows, objects = hits[ranked][hit], partners[ranked][hit, t]
        taken, took = np.zeros((count, len(left_out[0]))), np.zeros((count, len(order)))
        taken[t, self._position[rows]] = column(self.objects, "id", "ground truth")[objects]
        ids = column(self.detections, "id", "detections")
        took[t, column_of[objects]] = ids[self._detection[rows]]
        return _MatchTable(order, taken, took, left_out, ignored[order].astype(np.int64))

    @cached_property
    def _spans(self) -> dict[int, tuple[int, int, int, int]]:
        """Of each cell that has any, its detections and its objects: where they begin and end."""
        cells = np.union1d(self._cell, self._object_cell)
        ends = [
            np.searchsorted(of, cells, side).tolist()
            for of in (self._cell, self._object_cell)
            for side in ("left", "right")
        ]
        return dict(zip(cells.tolist(), zip(*ends, strict=True), strict=True))

    @cached_property
    def _ranks(self) -> NDArray[np.int64]:
        """[K] how many detections of its image and class are ranked above each row."""
        places = np.arange(len(self._cell))
        starts = np.flatnonzero(np.diff(self._cell, prepend=-1))
        ranks = np.empty(len(places), dtype=np.int64)
        ranks[self._ranked] = places - np.repeat(starts, np.diff([*starts, len(places)]))
        return ranks

    @cached_property
    def _partners(self) -> list[NDArray[np.int32]]:
        """[hits, ranges, T] what each hit is matched with, for each run of the matcher."""
        return [self._match(part, every_partner=True)["partners"] for part in self._ranges]

    def _in_range(self, area: int) -> tuple[Outcomes, NDArray[np.int64], int]:
        """The outcomes, objects to be found per class, and the scope of a range of area."""
        matched, scope = self._matched[area // _RANGES_AT_ONCE], area % _RANGES_AT_ONCE
        return Outcomes(*matched["outcomes"]), matched["truth"][:, scope], scope

    def _cells(self, image: Rows, place: Rows) -> NDArray[np.int64]:
        return image.astype(np.int64) * self.classes + place

    def _rows(self, cells: Cells) -> tuple[list[Annotation], Rows, Rows]:
        """The requested annotations, and the indices of their images and classes."""
        images, classes = self.image_places, self.class_places
        named = [key for key in cells if key[0] in images and key[1] in classes]
        if not self.question.use_classes:  # equal scores are taken class after class
            named.sort(key=lambda key: classes[key[1]])
        counts = [len(cells[key]) for key in named]
        image = np.array([images[key[0]] for key in named], dtype=np.int32)
        place = np.array([classes[key[1]] for key in named], dtype=np.int32)
        if not self.question.use_classes:
            place[:] = 0
        rows = [one for key in named for one in cells[key]]
        return rows, np.repeat(image, counts), np.repeat(place, counts)

    def _load(self, of_objects: tuple[Rows, Rows], of_detections: tuple[Rows, Rows]) -> None:
        """Loads the columns for the matcher."""
        question, truth, found = self.question, "ground truth", "detections"
        images = [question.images.get(one, {"id": one}) for one in question.image_ids]
        self._ranges = [
            question.area_ranges[at : at + _RANGES_AT_ONCE]
            for at in range(0, len(question.area_ranges), _RANGES_AT_ONCE)
        ]
        if not self._ranges:
            raise InputError("there are no ranges of area to evaluate")
        self._score = column(self.detections, "score", found)
        if not np.isfinite(self._score).all():
            raise InputError(f"{found}: score is infinite, expected a finite number")
        area = column(self.detections, "area", found)
        for row, one in enumerate(self.detections):
            if question.not_exhaustive is None:
                break
            if one["category_id"] in question.not_exhaustive[one["image_id"]]:
                area[row] = np.nan  # in no range of area: where unmatched, it does not count
        if question.iou == "bbox":
            object_masks = found_masks = None
            object_boxes, found_boxes = boxes(self.objects, truth), boxes(self.detections, found)
            height = width = np.zeros(len(images), dtype=np.int32)
        else:
            object_masks, found_masks = masks(self.objects, truth), masks(self.detections, found)
            object_boxes = np.zeros((len(self.objects), 4))
            found_boxes = np.zeros((len(self.detections), 4))
            placed = [(object_masks, of_objects[0]), (found_masks, of_detections[0])]
            height, width = image_sizes(images, placed)
        self._object_area = column(self.objects, "area", truth)
        self._ignored = np.array([bool(one["ignore"]) for one in self.objects], dtype=bool)
        crowd = [question.crowds and bool(one.get("iscrowd", 0)) for one in self.objects]
        self._truth = _native.Truth(
            image=of_objects[0],
            category=of_objects[1],
            box=object_boxes,
            area=self._object_area,
            ignore=self._ignored.view(np.uint8),
            crowd=_flags(crowd),
            reads_unmatched=_flags([one["id"] == 0 for one in self.objects]),
            masks=None if object_masks is None else object_masks.columns,
            image_height=height,
            image_width=width,
            categories=self.classes,
            negative=None,
            not_exhaustive=None,
        )
        self._found = _native.Detections(
            image=of_detections[0],
            category=of_detections[1],
            image_rows=np.arange(len(images), dtype=np.int32),
            category_rows=np.arange(self.classes, dtype=np.int32),
            score=self._score,
            box=found_boxes,
            masks=None if found_masks is None else found_masks.columns,
            area=area,
            leaves_free=_flags([one["id"] <= 0 for one in self.detections]),
        )

    def _match(
        self, ranges: Sequence[Sequence[float]], *, every_partner: bool = False
    ) -> dict[str, Any]:
        out: dict[str, Any] = _native.match(
            self._truth,
            self._found,
            _native.MatchSettings(
                overlap=self.question.iou,
                thresholds=self._thresholds.tolist(),
                area_low=[float(low) for low, _ in ranges],
                area_high=[float(high) for _, high in ranges],
                drop_empty=False,
                area_from_box=True,
                partners_at=-1,
                every_partner=every_partner,
            ),
            thread_count(),
        )
        if out["failure"] is not None:
            what, of_detection, row = out["failure"]
            one = (self.detections if of_detection else self.objects)[row]
            kind = "detection" if of_detection else "annotation"
            raise InputError(f"{kind} {one['id']}: {what}")
        return out


def _flags(values: list[bool]) -> NDArray[np.uint8]:
    return np.array(values, dtype=np.uint8)
