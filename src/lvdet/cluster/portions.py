"""Rows of a shard, with their places in the whole: what tasks exchange before it is matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.masks import Masks, no_masks
from lvdet.tables.problems import rows_of
from lvdet.tables.results import Ranking, Results, ScoreFacts

#: Bits of a place in the whole that number the rows of a shard.
_ROW_BITS = 32


@dataclass(frozen=True, eq=False)
class Portion:
    """Some of a shard's rows, or the rows of some images.

    results: with facts about the scores; images are numbered as in the annotations
    shard:   its place in the order of files
    row:     [N] the place of each row of the ranking in the shard, rising; None if that is its own
    """

    results: Results
    shard: int
    row: NDArray[np.int64] | None = None

    @property
    def position(self) -> NDArray[np.int64]:
        """[N] the place of each row in the whole, which only has to rise."""
        row = np.arange(len(self.results.ranking)) if self.row is None else self.row
        return row + (np.int64(self.shard) << _ROW_BITS)

    @property
    def nbytes(self) -> int:
        """Memory of its columns."""
        ranking, detections = self.results.ranking, self.results.detections
        columns: list[NDArray[Any]] = [ranking.image, ranking.category, ranking.score]
        columns += [] if self.row is None else [self.row]
        columns += [detections.box]
        columns += [] if detections.masks is None else detections.masks.columns
        return sum(column.nbytes for column in columns)

    def where(self, keep: NDArray[np.bool_]) -> Portion:
        """The rows selected by a mask; facts about the shard are unchanged."""
        row = np.flatnonzero(keep) if self.row is None else self.row[keep]
        return Portion(self.results.where(keep), self.shard, row)

    def with_facts_of(self, images: NDArray[np.bool_]) -> Portion:
        """The same rows, with the facts about some images ([I]) alone, and those about classes."""
        per_image = np.where(images, self.results.per_image, 0)
        total = int(per_image.sum())
        return replace(self, results=replace(self.results, per_image=per_image, total=total))

    def without_class_facts(self) -> Portion:
        """The same rows, for portions whose facts about classes go with another."""
        results = self.results
        nothing = np.zeros(0, dtype=np.int32)
        scores = ScoreFacts.of(nothing, np.zeros(0), len(results.ranking.category_ids))
        per_class = np.zeros_like(results.per_class)
        return replace(self, results=replace(results, per_class=per_class, scores=scores))


def pieces(
    portion: Portion, block: NDArray[np.integer[Any]], count: int, facts: bool
) -> list[Portion]:
    """The portion by blocks of images, from 0 on.

    block: [I] of each image, -1 for none; facts: whether those about classes go with the first
    """
    of_row = block[portion.results.ranking.image]
    plain = portion.without_class_facts()
    found = [portion if facts and not number else plain for number in range(count)]
    return [
        one.where(of_row == number).with_facts_of(block == number)
        for number, one in enumerate(found)
    ]


def union(portions: Sequence[Portion], gt: GroundTruth) -> tuple[Results, NDArray[np.int64]]:
    """The rows of portions, which are in the order of their shards, and their places in the
    whole."""
    if len(portions) == 1:
        return portions[0].results, portions[0].position
    rankings = [portion.results.ranking for portion in portions]
    known = gt.categories.ids
    every = np.concatenate([ranking.category_ids for ranking in rankings])
    unknown = np.unique(every[rows_of(known, every) < 0])
    ids = np.concatenate([known, unknown])
    places = [_places(known, unknown, ranking.category_ids) for ranking in rankings]
    per_class = np.zeros(len(ids), dtype=np.int64)
    facts = ScoreFacts.of(np.zeros(0, dtype=np.int32), np.zeros(0), len(ids))
    for portion, place in zip(portions, places, strict=True):
        results = portion.results
        per_class[place] += results.per_class
        scores = results.scores
        assert scores is not None
        facts.lowest[place] = np.minimum(facts.lowest[place], scores.lowest)
        facts.highest[place] = np.maximum(facts.highest[place], scores.highest)
        facts.outside[place] += scores.outside
    ranking = Ranking(
        np.concatenate([one.image for one in rankings]),
        np.concatenate([place[one.category] for one, place in zip(rankings, places, strict=True)]),
        np.concatenate([one.score for one in rankings]),
        gt.images.ids,
        ids,
        rankings[0].source,
    )
    starts = np.cumsum([0, *map(len, rankings)])
    rows = [
        _boxed_rows(portion.results) + np.int32(start)
        for portion, start in zip(portions, starts, strict=False)
    ]
    results = Results(
        ranking,
        _joined_detections([portion.results.detections for portion in portions], places, ranking),
        np.concatenate(rows),
        sum(portion.results.total for portion in portions),
        np.sum([portion.results.per_image for portion in portions], axis=0),
        per_class,
        facts,
    )
    return results, np.concatenate([portion.position for portion in portions])


def _places(
    known: NDArray[np.int64], unknown: NDArray[np.int64], ids: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The rows of class ids among those of the annotations, followed by the unknown ones."""
    found = rows_of(known, ids)
    return np.where(found < 0, len(known) + rows_of(unknown, ids), found).astype(np.int32)


def _boxed_rows(results: Results) -> NDArray[np.int32]:
    rows = results.rows
    return np.arange(len(results.ranking), dtype=np.int32) if rows is None else rows


def _joined_detections(
    tables: Sequence[Detections], places: Sequence[NDArray[np.int32]], ranking: Ranking
) -> Detections:
    masked = any(table.masks is not None for table in tables)
    masks = [no_masks(len(table)) if table.masks is None else table.masks for table in tables]
    return Detections(
        np.concatenate([table.image for table in tables]),
        np.concatenate([place[one.category] for one, place in zip(tables, places, strict=True)]),
        np.concatenate([table.score for table in tables]),
        np.concatenate([table.box for table in tables]),
        ranking.image_ids,
        ranking.category_ids,
        Masks.concatenate(masks) if masked else None,
        boxes_given=any(table.boxes_given for table in tables),
        source=ranking.source,
    )
