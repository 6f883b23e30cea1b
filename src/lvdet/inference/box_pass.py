"""The first pass: the boxes that the budgets keep, without masks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lvdet.files.progress import Update
from lvdet.inference.batches import Image, unfinished
from lvdet.inference.box_finder import BoxFinder, ImageBoxes, Pending
from lvdet.inference.in_order import InOrder
from lvdet.inference.job import Job
from lvdet.inference.loading import load
from lvdet.inference.settings import Settings
from lvdet.training.data.prediction import PredictionBatch
from lvdet.writers.top_k_writer import TopKWriter

#: Detections that may wait to be written: one batch in the beginning, when all are, many later.
WAITING = 1 << 22


def find_boxes(job: Job, targets: Sequence[Path], update: Update | None = None) -> None:
    """Writes the boxes that the budgets keep, a file for each threshold of NMS.

    Files that exist already are complete. Ties go to the earlier image, in an image to the
    earlier candidate.
    """
    images, settings, category_ids = job.images, job.settings, job.category_ids
    with ExitStack() as stack:
        writers = {
            nms: stack.enter_context(_writer(path, settings, category_ids))
            for nms, path in zip(settings.nms, targets, strict=True)
            if not path.exists()
        }
        if not writers:
            return
        kept = _Kept(job, list(writers.values()), update)
        todo = unfinished(images, settings.batch, kept.left)
        finder = BoxFinder(job, list(writers))
        writing = stack.enter_context(InOrder(WAITING))
        waiting: deque[Pending] = deque()

        def skip(damaged: list[Image]) -> None:
            job.leave_out(damaged)
            writing.give(lambda: kept.leave_out([image_id for image_id, _ in damaged]))

        def write_next() -> None:
            pending = waiting.popleft()
            found = finder.finish(pending)
            size = sum(len(rows[1]) for of_threshold in found for rows in of_threshold)
            writing.give(lambda: kept.add(pending.ids, found), size)

        def begin(part: PredictionBatch) -> Pending:
            return finder.begin(part, kept.bound)

        allowed = skip if settings.skip_damaged else None
        for given in load(todo, job.size, settings.batch, settings.workers, allowed):
            job.look()
            for pending in job.splitter.run(given, begin):
                waiting.append(pending)
                if len(waiting) > finder.ahead:
                    write_next()
        while waiting:
            write_next()


def _writer(path: Path, settings: Settings, category_ids: Sequence[int]) -> TopKWriter:
    return TopKWriter(
        path,
        dets_per_class=settings.dets_per_class,
        dets_per_image=settings.dets_per_image,
        box_format="xyxy",
        category_ids=category_ids,
        overwrite=True,
    )


class _Kept:
    """The boxes found so far, with one writer per NMS threshold.

    bound: [K] what a score of each class has to exceed to be of use to any of the budgets per
           class. It may be that of some batches ago, which lets more through than necessary
    left:  ids of the images that are not finished
    """

    def __init__(self, job: Job, writers: Sequence[TopKWriter], update: Update | None) -> None:
        self._job, self._writers, self._update = job, writers, update
        self.left = {
            image_id for image_id, _ in job.images if any(image_id not in w for w in writers)
        }
        self.bound = self._bound()

    def add(self, ids: Sequence[int], found: Sequence[Sequence[ImageBoxes]]) -> None:
        """Adds some images, each writer with its own detections."""
        for writer, of_threshold in zip(self._writers, found, strict=True):
            for image_id, rows in zip(ids, of_threshold, strict=True):
                if image_id not in writer:
                    writer.add(image_id, *rows)
        self.bound = self._bound()
        self._finish(ids)

    def leave_out(self, ids: Sequence[int]) -> None:
        """Adds images without detections."""
        for writer in self._writers:
            for image_id in ids:
                if image_id not in writer:
                    writer.add(image_id, [], [], [])
        self.left.difference_update(ids)

    def _finish(self, ids: Sequence[int]) -> None:
        self.left.difference_update(ids)
        if self._update is not None:
            total = len(self._job.images)
            self._update(total - len(self.left), total)

    def _bound(self) -> NDArray[np.float32]:
        """A writer whose class is full accepts no score at or below its threshold, because ties go
        to what was added first."""
        ids = self._job.category_ids
        lowest = np.min([writer.class_thresholds(ids) for writer in self._writers], axis=0)
        bound: NDArray[np.float32] = np.maximum(lowest, self._job.settings.score).astype(np.float32)
        return bound
