"""The second pass: masks for the boxes that the first pass found."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lvdet.files.progress import Update
from lvdet.inference.batches import unfinished
from lvdet.inference.box_file import NONE, BoxFile, Rows
from lvdet.inference.device import Wait
from lvdet.inference.in_order import InOrder
from lvdet.inference.job import Job
from lvdet.inference.loading import load
from lvdet.inference.paste import paste
from lvdet.tables.masks import Masks, no_masks
from lvdet.training.data.prediction import PredictionBatch
from lvdet.writers.top_k_writer import TopKWriter

#: Boxes whose masks are computed at a time, and how many such batches may wait to be pasted.
ROIS, AHEAD = 1024, 8


def find_masks(
    job: Job, sources: Sequence[Path], targets: Sequence[Path], update: Update | None = None
) -> None:
    """Writes the detections of each source again, with masks, to its target.

    Boxes, scores and order stay as in the sources; nothing is ranked again. A box that several
    sources share gets its mask once. Targets that exist already are complete.
    """
    images, settings, category_ids = job.images, job.settings, job.category_ids
    with ExitStack() as stack:
        pairs: list[tuple[BoxFile, TopKWriter]] = []
        for source, target in zip(sources, targets, strict=True):
            if not target.exists():
                writer = TopKWriter(
                    target,
                    dets_per_class=settings.dets_per_class,
                    dets_per_image=settings.dets_per_image,
                    category_ids=category_ids,
                    overwrite=True,
                )
                pairs.append((BoxFile(source, category_ids), stack.enter_context(writer)))
        some = {i for i, _ in images if any(i in boxes.images for boxes, _ in pairs)}
        left = {i for i in some if any(i in b.images and i not in writer for b, writer in pairs)}
        unwritten = frozenset(left)
        pasting = stack.enter_context(InOrder(AHEAD))

        def write(part: MaskedPart) -> None:
            for image_id, rows, masks in zip(part.ids, part.rows, part.masks(), strict=True):
                for (_, writer), of_writer, made in zip(pairs, rows, masks, strict=True):
                    if len(of_writer) and image_id not in writer:
                        writer.add(image_id, of_writer.box, of_writer.score, of_writer.label, made)
            left.difference_update(part.ids)
            if update is not None:
                update(len(some) - len(left), len(some))

        skip = job.leave_out if settings.skip_damaged else None
        todo = unfinished(images, settings.batch, unwritten)
        for given in load(todo, job.size, settings.batch, settings.workers, skip):
            job.look()
            rows = {
                image_id: [
                    boxes.next(image_id) if image_id in unwritten else NONE for boxes, _ in pairs
                ]
                for image_id in given.ids
            }

            def begin(part: PredictionBatch, rows: dict[int, list[Rows]] = rows) -> MaskedPart:
                masked = MaskedPart(part, [rows[image_id] for image_id in part.ids])
                masked.begin(job, part, pasting)
                return masked

            for part in job.splitter.run(given, begin):
                pasting.give(partial(write, part))


class MaskedPart:
    """Images with one or more lists of detections each, and their masks.

    ids:  image ids
    rows: the lists of each image
    """

    def __init__(self, given: PredictionBatch, rows: Sequence[Sequence[Rows]]) -> None:
        self.ids, self.rows = given.ids, rows
        self._shared = [_distinct(of_image) for of_image in rows]
        self._corners = np.concatenate([one.corners for one, _ in self._shared])
        self._number = [len(one) for one, _ in self._shared]
        self._size = np.repeat(given.original_size.numpy(), self._number, axis=0)
        self._made = [no_masks(0)]

    def begin(self, job: Job, given: PredictionBatch, pasting: InOrder) -> None:
        """Starts computing the maps of all masks, and pastes each batch when it is ready."""
        label = np.concatenate([one.label for one, _ in self._shared])
        if not len(label):
            return
        image = np.repeat(np.arange(len(self.ids)), self._number)
        execution, device = job.execution, job.execution.device
        with torch.inference_mode():
            batch = execution.moved(given.batch)
            with execution.autocast():
                features = job.detector.features(batch)
            original = given.original_size.to(device, non_blocking=True)
            scale = (batch.size.double() / original.double()).flip(1).repeat(1, 2)
            images, labels = execution.uploaded(image), execution.uploaded(label)
            resized = (execution.uploaded(self._corners) * scale[images]).float()
            for first in range(0, len(label), ROIS):
                of = slice(first, first + ROIS)
                with execution.autocast():
                    chance = job.detector.masks(
                        features, batch, images[of], resized[of], labels[of]
                    )
                here = chance.float().to("cpu", non_blocking=True)
                pasting.give(partial(self._paste, here, execution.now(), of))

    def _paste(self, chance: Tensor, there: Wait, of: slice) -> None:
        there()
        self._made.append(paste(chance, self._corners[of], self._size[of]))

    def masks(self) -> list[list[Masks]]:
        """The masks of each list of each image, all pasted."""
        masks = Masks.concatenate(self._made)
        begins = np.cumsum([0, *self._number])
        return [
            [masks[begin + of_list] for of_list in places]
            for begin, (_, places) in zip(begins, self._shared, strict=False)
        ]


def _distinct(lists: Sequence[Rows]) -> tuple[Rows, list[NDArray[np.int64]]]:
    """The distinct detections of several lists, and the index of each list's detections in them."""
    if len(lists) == 1:
        return lists[0], [np.arange(len(lists[0]))]
    table = np.concatenate(
        [np.concatenate([one.box, one.score[:, None], one.label[:, None]], axis=1) for one in lists]
    )
    rows, places = np.unique(table, axis=0, return_inverse=True)
    cuts = np.cumsum([len(one) for one in lists])[:-1]
    distinct = Rows(rows[:, :4], rows[:, 4], rows[:, 5].astype(np.int64))
    return distinct, np.split(places.reshape(-1), cuts)
