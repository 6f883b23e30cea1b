"""The second pass: masks of the boxes that the first has found, and of no others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lvdet.files.progress import Update
from lvdet.inference.batches import unfinished
from lvdet.inference.box_file import NONE, BoxFile, Rows
from lvdet.inference.job import Job
from lvdet.inference.loading import load
from lvdet.inference.paste import paste
from lvdet.inference.sinks import open_sink
from lvdet.training.data.prediction import PredictionBatch
from lvdet.writers.top_k_base import TopKBase

#: Boxes whose masks are computed at a time.
ROIS = 512

Segmentation = dict[str, Any]


def find_masks(
    job: Job, sources: Sequence[Path], targets: Sequence[Path], update: Update | None = None
) -> None:
    """Writes the detections of each source again, with masks, to its target.

    Boxes, scores and order are those of the sources, so nothing is ranked a second time. A box
    that several sources have gets its mask once. Targets that are there already are complete.
    """
    images, settings, category_ids = job.images, job.settings, job.category_ids
    with ExitStack() as stack:
        pairs: list[tuple[BoxFile, TopKBase]] = []
        for source, target in zip(sources, targets, strict=True):
            if not target.exists():
                boxes = stack.enter_context(closing(BoxFile(source, category_ids)))
                sink = open_sink(
                    target,
                    per_class=settings.per_class,
                    box_format="xywh",
                    category_ids=category_ids,
                )
                pairs.append((boxes, stack.enter_context(sink)))
        some = {image_id for image_id, _ in images if any(image_id in boxes for boxes, _ in pairs)}
        left = {
            image_id
            for image_id in some
            if any(image_id in boxes and image_id not in sink for boxes, sink in pairs)
        }
        todo = unfinished(images, settings.batch, left)

        def detect(part: PredictionBatch) -> list[tuple[int, list[Rows], Any]]:
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
                    for (_, sink), some_rows, of_rows in zip(pairs, rows, masks, strict=True):
                        if len(some_rows) and image_id not in sink:
                            sink.add(
                                image_id,
                                some_rows.box,
                                some_rows.score,
                                some_rows.label,
                                of_rows,
                            )
                    left.discard(image_id)
                if update is not None:
                    update(len(some) - len(left), len(some))


def masks_of(
    job: Job, part: PredictionBatch, rows: Sequence[Sequence[Rows]]
) -> list[list[list[Segmentation]]]:
    """For each image and each of its lists of detections their masks, as COCO run lengths.

    rows: for each image one or more lists
    """
    shared = [_distinct(of_image) for of_image in rows]
    corners = np.concatenate([one.corners for one, _ in shared])
    label = np.concatenate([one.label for one, _ in shared])
    number = [len(one) for one, _ in shared]
    execution, device = job.execution, job.execution.device
    with torch.inference_mode():
        image = torch.from_numpy(np.repeat(np.arange(len(rows)), number)).to(device)
        box = torch.from_numpy(corners).to(device)
        labels = torch.from_numpy(label).to(device)
        texts: list[str] = []
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
                texts += paste(chance.float(), box[of], original[image[of]])
    masks = []
    begin = 0
    for (height, width), count, (_, places) in zip(
        part.original_size.tolist(), number, shared, strict=True
    ):
        of_image = [
            {"size": [height, width], "counts": text} for text in texts[begin : begin + count]
        ]
        masks.append([[of_image[place] for place in of_list.tolist()] for of_list in places])
        begin += count
    return masks


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
