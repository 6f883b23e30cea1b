"""The items of `evalImgs`, and of lvis' `eval_imgs`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from lvdet.integrations.lazy import LazyList
from lvdet.integrations.matched_cells import MatchedCells

#: What an item's fields are called by each tool; lvis has no limit per image and class.
COCO_FIELDS = (
    *("image_id", "category_id", "aRng", "maxDet", "dtIds", "gtIds"),
    *("dtMatches", "gtMatches", "dtScores", "gtIgnore", "dtIgnore"),
)
LVIS_FIELDS = (
    *("image_id", "category_id", "area_rng", "", "dt_ids", "gt_ids"),
    *("dt_matches", "gt_matches", "dt_scores", "gt_ignore", "dt_ignore"),
)


def cell_records(
    matched: MatchedCells, fields: Sequence[str], limit: int | None = None
) -> LazyList:
    """The items of a match: classes outermost, then ranges of area, then images."""
    question = matched.question
    count = matched.classes * len(question.area_ranges) * len(question.image_ids)
    return LazyList(count, partial(_record, matched, tuple(fields), limit))


def _record(
    matched: MatchedCells, fields: Sequence[str], limit: int | None, place: int
) -> dict[str, Any] | None:
    question = matched.question
    rest, image = divmod(place, len(question.image_ids))
    of_class, area = divmod(rest, len(question.area_ranges))
    cell = matched.record(image, of_class, area, limit)
    if cell is None:
        return None
    values = (
        question.image_ids[image],
        question.class_ids[of_class] if question.use_classes else -1,
        question.area_ranges[area],
        limit,
        [one["id"] for one in cell.detections],
        [one["id"] for one in cell.objects],
        cell.detection_matches,
        cell.object_matches,
        [one["score"] for one in cell.detections],
        cell.object_ignored,
        cell.detection_ignored,
    )
    return {field: value for field, value in zip(fields, values, strict=True) if field}
