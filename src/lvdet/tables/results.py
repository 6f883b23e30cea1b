"""A results file as an evaluation needs it: everything that budgets count, and boxes of what can
match."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.tables.columns import take
from lvdet.tables.description import counted, describe_line
from lvdet.tables.detections import Detections
from lvdet.tables.matches import Matches


@dataclass(frozen=True, eq=False, repr=False)
class Ranking:
    """What budgets need: image, class and score of each detection, in file order.

    image, category: [N] int32, rows of `image_ids` and `category_ids`
    score: [N] float64, finite
    image_ids, category_ids: int64
    source: its name in messages
    """

    image: NDArray[np.int32]
    category: NDArray[np.int32]
    score: NDArray[np.float64]
    image_ids: NDArray[np.int64]
    category_ids: NDArray[np.int64]
    source: str = "detections"

    def __repr__(self) -> str:
        return describe_line(self, counted(len(self), "detection"))

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, eq=False)
class ScoreFacts:
    """What is known of the scores of each class in a file, kept or not.

    lowest, highest: float64; infinite and minus infinite for classes without detections
    outside: int64, how many scores are not in [0, 1]
    """

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    outside: NDArray[np.int64]

    @staticmethod
    def of(category: NDArray[np.int32], score: NDArray[np.float64], classes: int) -> ScoreFacts:
        """Of all scores, by class."""
        lowest, highest = np.full(classes, np.inf), np.full(classes, -np.inf)
        np.minimum.at(lowest, category, score)
        np.maximum.at(highest, category, score)
        outside = np.bincount(category[(score < 0) | (score > 1)], minlength=classes)
        return ScoreFacts(lowest, highest, outside)


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """The detections that budgets count, and those of them that can be matched.

    ranking:    every detection, or those that the budgets it was read for can keep
    detections: those in cells that count, with boxes and masks
    rows:       [M] int32, the row of each in `ranking`; None if rows are identical
    total:      detections in the file
    per_image, per_class: int64, their number for each of `ranking`'s image and category ids
    scores:     facts about all scores of each of `ranking`'s category ids; None if only the scores
                in the ranking are known
    matchable:  False where parts were matched on their own, and only boxes of a sample are left
    """

    ranking: Ranking
    detections: Detections
    rows: NDArray[np.int32] | None
    total: int
    per_image: NDArray[np.int64]
    per_class: NDArray[np.int64]
    scores: ScoreFacts | None = None
    matchable: bool = True

    def __repr__(self) -> str:
        held = f"{len(self.ranking):,} ranked, {len(self.detections):,} with boxes"
        return describe_line(self, counted(self.total, "detection"), held)

    @staticmethod
    def of(detections: Detections) -> Results:
        """From a complete table."""
        ranking = Ranking(
            detections.image,
            detections.category,
            detections.score,
            detections.image_ids,
            detections.category_ids,
            detections.source,
        )
        return Results(
            ranking,
            detections,
            None,
            len(detections),
            _native.count_rows(detections.image, len(detections.image_ids)),
            _native.count_rows(detections.category, len(detections.category_ids)),
        )

    @property
    def source(self) -> str:
        """The name of the file in messages."""
        return self.ranking.source

    def where(self, keep: NDArray[np.bool_]) -> Results:
        """The rows selected by a mask over `ranking`; facts about the file are unchanged."""
        ranking, rows, kept = self.ranking, self.rows, np.flatnonzero(keep)
        inner = kept if rows is None else np.flatnonzero(keep[rows])
        if rows is not None:
            place = np.empty(len(keep), dtype=np.int32)
            place[kept] = np.arange(len(kept), dtype=np.int32)
            rows = place[rows[inner]]
        return replace(
            self,
            ranking=replace(
                ranking,
                image=ranking.image.take(kept),
                category=ranking.category.take(kept),
                score=ranking.score.take(kept),
            ),
            detections=self.detections[inner],
            rows=rows,
        )

    def with_scores(self, score: NDArray[np.float64]) -> Results:
        """The same detections with other scores ([N], for the rows of `ranking`)."""
        inner = score if self.rows is None else score[self.rows]
        return replace(
            self,
            ranking=replace(self.ranking, score=score),
            scores=None,
            detections=self.detections.with_scores(inner),
        )

    def table_rows(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Rows of `ranking` with boxes, as rows of `detections`."""
        if self.rows is None:
            return rows
        place = np.empty(len(self.ranking), dtype=np.int32)
        place[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        return place[rows]

    def placed(self, matches: Matches) -> Matches:
        """Matches of `detections`, converted to rows of `ranking`."""
        if self.rows is None:
            return matches
        rows = take(self.rows, matches.detection)
        return replace(matches, detection=rows)
