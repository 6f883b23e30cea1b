"""The second pass: masks of the boxes that the first has found, and of no others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from lvdet.files.progress import Update
from lvdet.inference.batches import unfinished
from lvdet.inference.box_file import NONE, BoxFile, Rows
from lvdet.inference.job import Job
from lvdet.inference.loading import load
from lvdet.inference.paste import paste
from lvdet.tables.masks import Masks, no_masks
from lvdet.training.data.prediction import PredictionBatch
from lvdet.writers.top_k_writer import TopKWriter

#: Boxes whose masks are computed at a time.
ROIS = 512


def find_masks(
    job: Job, sources: Sequence[Path], targets: Sequence[Path], update: Update | None = None
) -> None:
    """Writes the detections of each source again, with masks, to its target.

    Boxes, scores and order are those of the sources, so nothing is ranked a second time. A box
    that several sources have gets its mask once. Targets that are there already are complete.
    """
    images, settings, category_ids = job.images, job.settings, job.category_ids
    with ExitStack() as stack:
        pairs: list[tuple[BoxFile, TopKWriter]] = []
        for source, target in zip(sources, targets, strict=True):
            if not target.exists():
                boxes = stack.enter_context(closing(BoxFile(source, category_ids)))
                writer = TopKWriter(
                    target,
                    dets_per_class=settings.dets_per_class,
                    category_ids=category_ids,
                    overwrite=True,
                )
                pairs.append((boxes, stack.enter_context(writer)))
        some = {image_id for image_id, _ in images if any(image_id in boxes for boxes, _ in pairs)}
        left = {
            image_id
            for image_id in some
            if any(image_id in boxes and image_id not in writer for boxes, writer in pairs)
        }
        todo = unfinished(images, settings.batch, left)

        def detect(part: PredictionBatch) -> list[tuple[int, list[Rows], list[Masks]]]:
            rows = [
                [boxes[image_id] if image_id in left else NONE for boxes, _ in pairs]
                for image_id in part.ids
            ]
            masks = masks_of(job, part, rows)
            return list(zip(part.ids, rows, masks, strict=True))

        skip = job.leave_out if settings.skip_damaged else None
        for given in load(todo, job.size, settings.batch, settings.workers, skip):
            for found in job.portions.of(given, detect):
                for image_id, rows, masks in found:
                    for (_, writer), some_rows, of_rows in zip(pairs, rows, masks, strict=True):
                        if len(some_rows) and image_id not in writer:
                            writer.add(
                                image_id,
                                some_rows.box,
                                some_rows.score,
                                some_rows.label,
                                of_rows,
                            )
                    left.discard(image_id)
                if update is not None:
                    update(len(some) - len(left), len(some))


def masks_of(job: Job, part: PredictionBatch, rows: Sequence[Sequence[Rows]]) -> list[list[Masks]]:
    """For each image and each of its lists of detections their masks.

    rows: for each image one or more lists
    """
    shared = [_distinct(of_image) for of_image in rows]
    corners = np.concatenate([one.corners for one, _ in shared])
    label = np.concatenate([one.label for one, _ in shared])
    number = [len(one) for one, _ in shared]
    size = np.repeat(part.original_size.numpy(), number, axis=0)
    execution, device = job.execution, job.execution.device
    with torch.inference_mode():
        image = torch.from_numpy(np.repeat(np.arange(len(rows)), number)).to(device)
        box = torch.from_numpy(corners).to(device)
        labels = torch.from_numpy(label).to(device)
        made = [no_masks(0)]
        if len(label):
            batch = execution.moved(part.batch)
            with execution.autocast():
                features = job.detector.features(batch)
            original = part.original_size.to(device)
            scale = (batch.size.double() / original.double()).flip(1).repeat(1, 2)
            for begin in range(0, len(label), ROIS):
                of = slice(begin, begin + ROIS)
                resized = (box[of] * scale[image[of]]).float()
                with execution.autocast():
                    chance = job.detector.masks(features, batch, image[of], resized, labels[of])
                made.append(paste(chance, corners[of], size[of]))
    masks = Masks.concatenate(made)
    begins = np.cumsum([0, *number])
    return [
        [masks[begin + of_list] for of_list in places]
        for begin, (_, places) in zip(begins, shared, strict=False)
    ]


def _distinct(lists: Sequence[Rows]) -> tuple[Rows, list[NDArray[np.int64]]]:
    """The different detections of several lists, and where those of each list are among them."""
    if len(lists) == 1:
        return lists[0], [np.arange(len(lists[0]))]
    table = np.concatenate(
        [np.concatenate([one.box, one.score[:, None], one.label[:, None]], axis=1) for one in lists]
    )
    rows, places = np.unique(table, axis=0, return_inverse=True)
    cuts = np.cumsum([len(one) for one in lists])[:-1]
    distinct = Rows(rows[:, :4], rows[:, 4], rows[:, 5].astype(np.int64))
    return distinct, np.split(places.reshape(-1), cuts)
