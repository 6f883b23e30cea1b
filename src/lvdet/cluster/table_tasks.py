"""The work of one task where files are converted: reads a shard, or takes the rows to write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet.cluster.tasks import in_folder
from lvdet.files.detection_files import read_counted
from lvdet.files.known_images import KnownImages
from lvdet.files.remote_path import InputPath
from lvdet.limits.budgets import Budget, PerClass, PerImage, apply
from lvdet.tables.detections import Detections, encode_ids
from lvdet.tables.results import Ranking
from lvdet.threads import set_threads


@dataclass(frozen=True, eq=False)
class Conversion:
    """What all tasks of a conversion know.

    change: applied to each table before it is written
    folder: where relative paths begin
    """

    masks: bool
    dets_per_class: int | None
    dets_per_image: int | None
    images: KnownImages
    change: Callable[[Detections], Detections]
    folder: str

    @property
    def budgets(self) -> list[Budget]:
        """A row is written if one of them keeps it; every row if there are none."""
        found: list[Budget] = []
        found += [] if self.dets_per_class is None else [PerClass(self.dets_per_class)]
        found += [] if self.dets_per_image is None else [PerImage(self.dets_per_image)]
        return found


@dataclass(frozen=True, eq=False)
class TableFacts:
    """What the coordinating process learns of a shard.

    found: its rows; rows: those that a budget of this shard alone keeps, with
    image_id, category_id, score: [rows], None without a budget
    """

    found: int
    rows: int
    masks: bool
    boxes_given: bool
    image_id: NDArray[np.int64] | None = None
    category_id: NDArray[np.int64] | None = None
    score: NDArray[np.float64] | None = None


def read_table(job: Conversion, path: InputPath) -> tuple[TableFacts, Detections]:
    """The rows of a shard that may be written."""
    set_threads(1)
    with in_folder(job.folder):
        table, found = read_counted(
            [str(path)],
            masks=job.masks,
            dets_per_class=job.dets_per_class,
            dets_per_image=job.dets_per_image,
            images=job.images,
        )
    facts = TableFacts(found, len(table), table.masks is not None, table.boxes_given)
    if job.budgets:
        facts = replace(
            facts,
            image_id=table.image_ids[table.image],
            category_id=table.category_ids[table.category],
            score=table.score,
        )
    return facts, replace(table, source=str(path))


def chosen_rows(facts: Sequence[TableFacts], budgets: Sequence[Budget]) -> list[NDArray[np.int64]]:
    """The rows of each shard that a budget over all shards keeps."""
    image_ids, image = encode_ids(np.concatenate([one.image_id for one in facts]), "", "")
    class_ids, category = encode_ids(np.concatenate([one.category_id for one in facts]), "", "")
    score = np.concatenate([one.score for one in facts])
    ranking = Ranking(image, category, score, image_ids, class_ids)
    keep = np.zeros(len(score), dtype=bool)
    for budget in budgets:
        kept = apply([budget], ranking)
        keep |= True if kept is None else kept
    borders = np.cumsum([one.rows for one in facts])[:-1]
    return [np.flatnonzero(part) for part in np.split(keep, borders)]


def changed_table(
    job: Conversion, table: Detections, rows: NDArray[np.int64] | None, boxes_given: bool
) -> Detections:
    """The rows to write, all if None; with boxes if any shard has some."""
    set_threads(1)
    with in_folder(job.folder):
        taken = table if rows is None else replace(table[rows], boxes_given=boxes_given)
        return job.change(taken)
