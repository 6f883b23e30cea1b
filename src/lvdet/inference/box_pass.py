"""The first pass: the boxes that are among the best of their classes, without masks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lvdet.files.progress import Update
from lvdet.inference.batches import Image, unfinished
from lvdet.inference.job import Job
from lvdet.inference.loading import load
from lvdet.inference.settings import Settings
from lvdet.training.data.prediction import PredictionBatch
from lvdet.training.model.nms import class_nms
from lvdet.writers.top_k_writer import TopKWriter

#: Of one image: boxes [n, 4] float64 corners in the original image, scores [n], class rows [n].
Found = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def find_boxes(job: Job, targets: Sequence[Path], update: Update | None = None) -> None:
    """Writes the best boxes of each class over all images, a file for each threshold of NMS.

    Files that are there already are complete. Ties go to the earlier image, in an image to the
    earlier candidate.
    """
    images, settings, category_ids = job.images, job.settings, job.category_ids
    with ExitStack() as stack:
        writers: list[tuple[float, TopKWriter]] = [
            (nms, stack.enter_context(_writer(path, settings, category_ids)))
            for nms, path in zip(settings.nms, targets, strict=True)
            if not path.exists()
        ]
        if not writers:
            return
        left = {image_id for image_id, _ in images if any(image_id not in w for _, w in writers)}
        todo = unfinished(images, settings.batch, left)

        def detect(part: PredictionBatch) -> tuple[list[int], list[list[Found]]]:
            bound = bounds([writer for _, writer in writers], category_ids, settings.score)
            return part.ids, detections(
                job, part, torch.from_numpy(bound), [nms for nms, _ in writers]
            )

        def skip(damaged: list[Image]) -> None:
            job.leave_out(damaged)
            for _, writer in writers:
                for image_id, _ in damaged:
                    if image_id not in writer:
                        writer.add(image_id, [], [], [])
            left.difference_update(image_id for image_id, _ in damaged)

        allowed = skip if settings.skip_damaged else None
        batches = load(todo, job.size, settings.batch, settings.workers, allowed)
        for given in batches:
            for ids, found in job.portions.of(given, detect):
                for (_, writer), of_threshold in zip(writers, found, strict=True):
                    for image_id, rows in zip(ids, of_threshold, strict=True):
                        if image_id not in writer:
                            writer.add(image_id, *rows)
                left.difference_update(ids)
                if update is not None:
                    update(len(images) - len(left), len(images))


def _writer(path: Path, settings: Settings, category_ids: Sequence[int]) -> TopKWriter:
    return TopKWriter(
        path,
        dets_per_class=settings.dets_per_class,
        box_format="xyxy",
        category_ids=category_ids,
        overwrite=True,
    )


def bounds(
    writers: Sequence[TopKWriter], category_ids: Sequence[int], score: float
) -> NDArray[np.float32]:
    """[K] what a score of each class has to exceed to be of use to any writer.

    Candidates at or below it can be dropped even before suppression, which changes nothing about
    those above: whether a box is suppressed depends only on the boxes of its class that come
    before it by falling score, all of which are above the bound too, and on whether those are
    suppressed, which is the same by induction. And a writer whose class is full takes no score at
    or below its threshold, as ties go to what was added before.
    """
    lowest = np.full(len(category_ids), np.inf)
    for writer in writers:
        full = writer.thresholds
        lowest = np.minimum(lowest, [full.get(name, -np.inf) for name in category_ids])
    bound: NDArray[np.float32] = np.maximum(lowest, score).astype(np.float32)
    return bound


def detections(
    job: Job, part: PredictionBatch, bound: Tensor, nms: Sequence[float]
) -> list[list[Found]]:
    """For each threshold of NMS the detections of each image above their class's bound, by falling
    score. Boxes without an area are left out: they overlap with nothing."""
    execution, device = job.execution, job.execution.device
    with torch.inference_mode():
        batch = execution.moved(part.batch)
        with execution.autocast():
            candidates = job.detector.candidates(job.detector.features(batch), batch)
        bound = bound.to(device)
        box, score, label, image = _above(candidates, bound)
        classes = len(bound)
        kept = class_nms(box, score, image * classes + label, list(nms))
        original = part.original_size.to(device)
        scale = (original.double() / batch.size.double()).flip(1).repeat(1, 2)
        limit = original.flip(1).repeat(1, 2).double()
        found = []
        for rows in kept:
            of = image[rows]
            corners = torch.minimum(box[rows].double() * scale[of], limit[of]).clamp(min=0)
            order = torch.argsort(of, stable=True)
            columns = [
                column[order].cpu().numpy() for column in (corners, score[rows], label[rows])
            ]
            cuts = np.cumsum(np.bincount(of.cpu().numpy(), minlength=len(part.ids)))[:-1]
            parts = [np.split(column, cuts) for column in columns]
            found.append(list(zip(*parts, strict=True)))
        return found


def _above(candidates: Any, bound: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Boxes, scores, class rows and image rows of the candidates above their class's bound."""
    columns: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    for number, one in enumerate(candidates):
        row, label = (one.score > bound).nonzero(as_tuple=True)
        box = one.box[row, label] if one.box.ndim == 3 else one.box[row]
        some = (box[:, 2:] > box[:, :2]).all(dim=1)
        row, label, box = row[some], label[some], box[some]
        columns.append((box, one.score[row, label], label, torch.full_like(label, number)))
    box, score, label, image = (torch.cat(column) for column in zip(*columns, strict=True))
    return box, score, label, image
