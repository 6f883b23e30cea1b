"""The first pass: the boxes that are among the best of their classes, without masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lvdet.predict.batches import Image, Portions, unfinished
from lvdet.predict.device import Execution
from lvdet.predict.loading import load
from lvdet.predict.settings import Settings
from lvdet.predict.sinks import Sink, open_sink
from lvdet.read.files import Progress
from lvdet.train.config import Input
from lvdet.train.data.prediction import PredictionBatch
from lvdet.train.detector.nms import class_nms

#: Of one image: boxes [n, 4] float64 corners in the original image, scores [n], class rows [n].
Found = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def find_boxes(
    detector: Any,
    images: Sequence[Image],
    targets: Sequence[Path],
    *,
    size: Input,
    category_ids: Sequence[int],
    settings: Settings,
    portions: Portions,
    execution: Execution,
    leave_out: Callable[[Sequence[Image]], None],
    progress: Progress | None = None,
) -> None:
    """Writes the best boxes of each class over all images, a file for each threshold of NMS.

    Files that are there already are complete. Ties go to the earlier image, in an image to the
    earlier candidate. `leave_out` is told of damaged images where the settings allow them, before
    they are finished.
    """
    with ExitStack() as stack:
        sinks: list[tuple[float, Sink]] = [
            (nms, stack.enter_context(_sink(path, settings, category_ids)))
            for nms, path in zip(settings.nms, targets, strict=True)
            if not path.exists()
        ]
        if not sinks:
            return
        left = {image_id for image_id, _ in images if any(image_id not in s for _, s in sinks)}
        todo = unfinished(images, settings.batch, left)

        def detect(part: PredictionBatch) -> tuple[list[int], list[list[Found]]]:
            bound = bounds([sink for _, sink in sinks], category_ids, settings.score)
            return part.ids, detections(
                detector, part, torch.from_numpy(bound), [nms for nms, _ in sinks], execution
            )

        def skip(damaged: list[Image]) -> None:
            leave_out(damaged)
            for _, sink in sinks:
                for image_id, _ in damaged:
                    if image_id not in sink:
                        sink.add(image_id, [], [], [])
            left.difference_update(image_id for image_id, _ in damaged)

        batches = load(
            todo, size, settings.batch, settings.workers, skip if settings.skip_damaged else None
        )
        for given in batches:
            for ids, found in portions.of(given, detect):
                for (_, sink), of_threshold in zip(sinks, found, strict=True):
                    for image_id, rows in zip(ids, of_threshold, strict=True):
                        if image_id not in sink:
                            sink.add(image_id, *rows)
                left.difference_update(ids)
                if progress is not None:
                    progress(len(images) - len(left), len(images))


def _sink(path: Path, settings: Settings, category_ids: Sequence[int]) -> Sink:
    return open_sink(
        path, per_class=settings.per_class, box_format="xyxy", category_ids=category_ids
    )


def bounds(sinks: Sequence[Sink], category_ids: Sequence[int], score: float) -> NDArray[np.float32]:
    """[K] what a score of each class has to exceed to be of use to any sink.

    Candidates at or below it can be dropped even before suppression, which changes nothing about
    those above: whether a box is suppressed depends only on the boxes of its class that come
    before it by falling score, all of which are above the bound too, and on whether those are
    suppressed, which is the same by induction. And a sink whose class is full takes no score at
    or below its threshold, as ties go to what was added before.
    """
    lowest = np.full(len(category_ids), np.inf)
    for sink in sinks:
        full = sink.thresholds
        lowest = np.minimum(lowest, [full.get(name, -np.inf) for name in category_ids])
    bound: NDArray[np.float32] = np.maximum(lowest, score).astype(np.float32)
    return bound


def detections(
    detector: Any,
    part: PredictionBatch,
    bound: Tensor,
    nms: Sequence[float],
    execution: Execution,
) -> list[list[Found]]:
    """For each threshold of NMS the detections of each image above their class's bound, by falling
    score. Boxes without an area are left out: they overlap with nothing."""
    with torch.inference_mode():
        batch = execution.moved(part.batch)
        with execution.autocast():
            candidates = detector.candidates(detector.features(batch), batch)
        device = execution.device
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
