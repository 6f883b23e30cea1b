"""Which detections are correct: the result of matching, for every budget at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.tables.description import counted, describe_line
from lvdet.tables.outcomes import Outcomes
from lvdet.threads import thread_count

Contested: TypeAlias = tuple[
    "np.ndarray[tuple[int], np.dtype[np.int32]]",
    "np.ndarray[tuple[int, int], np.dtype[np.uint8]]",
]


@dataclass(frozen=True, eq=False, repr=False)
class Matches:
    """The detections that count, matched without any limit.

    Rows are ordered by class, then descending score; ties by image, then by their order in the
    image. A match depends only on detections ranked above in the same image and class, so a budget,
    which removes the end of that ranking, is a mask over these rows.

    detection: [K] int32, row of `Detections`
    position:  [K] int32, place of the row when ordered by image, class and rank: the order among
               equal scores where classes are ranked together
    together:  [K] int32, the rows in one ranking over all classes, by descending score and position
    category_offsets: [C + 1] int64, where each class's rows begin
    outcomes:  which rows are correct and incorrect in each of the A area ranges, at T thresholds
    truth:     [C, A] int64, ground truth to find
    thresholds: [T] float64, IoU thresholds
    areas:     names of the A area ranges
    iou:       "bbox", "segm" or "boundary"
    contested: [P] int32 and [P, B] uint8, rows that another order of equal scores in their image
               might match otherwise, and at which thresholds they could match anything, over all
               areas; None where the scores are not those of the matching
    partner:   [K] int32, row of `GroundTruth` that a row is matched with over all areas, at the one
               threshold that was requested, -1 for none; None if not requested
    overlap:   [K] float64, overlap with the partner, 0 if there is none; None if partners were not
               requested
    """

    detection: NDArray[np.int32]
    position: NDArray[np.int32]
    together: NDArray[np.int32]
    category_offsets: NDArray[np.int64]
    outcomes: Outcomes
    truth: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    areas: tuple[str, ...]
    iou: str
    partner: NDArray[np.int32] | None = None
    overlap: NDArray[np.float64] | None = None
    contested: Contested | None = None

    def __repr__(self) -> str:
        return describe_line(
            self,
            counted(len(self), "detection"),
            counted(len(self.truth), "class", "classes"),
            f"{self.iou} at {counted(len(self.thresholds), 'threshold')}",
        )

    def __len__(self) -> int:
        return len(self.detection)

    def where(self, keep: NDArray[np.bool_]) -> Matches:
        """The rows selected by a mask ([K]); the objects to find are unchanged."""
        there = np.zeros(len(self), dtype=bool)
        there[self.position[keep]] = True
        place = np.cumsum(there, dtype=np.int32) - np.int32(1)
        before = np.append(0, np.cumsum(keep))
        together = before[self.together[keep[self.together]]]
        return replace(
            self,
            together=together.astype(np.int32),
            detection=self.detection[keep],
            position=place[self.position[keep]],
            category_offsets=before[self.category_offsets],
            outcomes=self.outcomes.where(keep),
            contested=_contested_where(self.contested, keep),
            partner=None if self.partner is None else self.partner[keep],
            overlap=None if self.overlap is None else self.overlap[keep],
        )

    def with_scores(self, score: NDArray[np.float64], image: NDArray[np.int32]) -> Matches | None:
        """The match of the same detections with other scores, whose rows are reordered. None if the
        scores change the order within an image and class, so that matching would differ. Both [N],
        over the detections."""
        rows = np.empty(len(self), dtype=np.int32)
        rows[self.position] = np.arange(len(self), dtype=np.int32)
        detection, category = self.detection[rows], self.category[rows]
        new, place = score[detection], image[detection]
        neighbours = (category[1:] == category[:-1]) & (place[1:] == place[:-1])
        tied = (new[1:] == new[:-1]) & (detection[1:] < detection[:-1])  # the file decides
        if (neighbours & ((new[1:] > new[:-1]) | tied)).any():
            return None
        position, together = _native.rank_classes(new, category, len(self.truth), thread_count())
        order = rows[position]
        return replace(
            self,
            detection=self.detection[order],
            position=position,
            together=together,
            outcomes=self.outcomes.ordered(order),
            contested=None,
            partner=None if self.partner is None else self.partner[order],
            overlap=None if self.overlap is None else self.overlap[order],
        )

    def kept(self, keep: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """[K] the rows whose detections are selected by a mask over all detections; None for
        all."""
        return None if keep is None else keep[self.detection]

    def flags(self, threshold: int, area: int = 0) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """[K] whether each row is matched, and ignored, at a threshold and area by index."""
        return self.outcomes.flags(threshold, area)

    @cached_property
    def category(self) -> NDArray[np.int32]:
        """[K] class of each row."""
        counts = np.diff(self.category_offsets)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def _contested_where(contested: Contested | None, keep: NDArray[np.bool_]) -> Contested | None:
    if contested is None:
        return None
    rows, reached = contested
    kept = keep[rows]
    place = np.cumsum(keep, dtype=np.int32) - np.int32(1)
    return place[rows[kept]], reached[kept]
