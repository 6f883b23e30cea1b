"""Finds the boxes of a batch that a budget may keep, asynchronously."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lvdet.errors import LvdetError
from lvdet.inference.device import Wait
from lvdet.inference.job import Job
from lvdet.inference.selection import Selected, Wanted, select
from lvdet.training.data.prediction import PredictionBatch
from lvdet.training.model.candidates import Candidates

#: Of one image: boxes [n, 4] float64 corners in the original image, scores [n], class rows [n].
ImageBoxes = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

#: Initial number of candidates of an image per detection that its budget keeps.
LOOKED_AT = 4
#: Half of the room that there is at least for the candidates of a batch, where it is fixed.
LEAST_ROOM = 1 << 12


@dataclass(frozen=True)
class _Request:
    """The candidates of some images, and what is wanted from them.

    scale: [B, 4] from pixels of the resized to those of the original image
    limit: [B, 4] the largest coordinates in the original image
    """

    ids: list[int]
    candidates: Candidates
    wanted: Wanted
    scale: Tensor
    limit: Tensor

    def of(self, image: int) -> _Request:
        """The request for one image."""
        rows = torch.tensor([image], device=self.scale.device)
        candidates = self.candidates.of(rows)
        ids = self.ids[image : image + 1]
        return _Request(ids, candidates, self.wanted, self.scale[rows], self.limit[rows])


@dataclass(frozen=True)
class Pending:
    """Results that a device may still be computing.

    most, room: as in `select`
    counts: the ends for each threshold, and whether they are enough; then the number of candidates
        taken
    """

    request: _Request
    most: int
    room: int | None
    selected: list[Selected]
    counts: Tensor
    done: Wait

    @property
    def ids(self) -> list[int]:
        """The ids of the images."""
        return self.request.ids


class BoxFinder:
    """Finds boxes in batches; a GPU may process one batch while the previous one is read.

    ahead: batches that may be started before the first of them is finished
    """

    def __init__(self, job: Job, nms: Sequence[float]) -> None:
        self._job, self._nms = job, list(nms)
        self._device = job.execution.device
        self.ahead = 1 if job.execution.asynchronous else 0
        self._most = LOOKED_AT * job.settings.dets_per_image
        self._room: int | None = None
        self._copies: torch.cuda.Stream | None = None
        if self._device.type == "cuda":
            self._copies = torch.cuda.Stream(self._device, priority=-1)  # type: ignore[no-untyped-call]

    def begin(self, part: PredictionBatch, bound: NDArray[np.float32]) -> Pending:
        """Starts a batch; on a GPU, without waiting for anything."""
        execution, settings = self._job.execution, self._job.settings
        with torch.inference_mode():
            batch = execution.moved(part.batch)
            with execution.autocast():
                candidates = self._job.detector.candidates(
                    self._job.detector.features(batch), batch
                )
            wanted = Wanted(
                execution.uploaded(bound), settings.score, settings.dets_per_image, self._nms
            )
            original = part.original_size.to(self._device, non_blocking=True)
            scale = (original.double() / batch.size.double()).flip(1).repeat(1, 2)
            limit = original.flip(1).repeat(1, 2).double()
            numel = candidates.score.numel()
            room = min(self._room or numel, numel) if execution.asynchronous else None
            request = _Request(part.ids, candidates, wanted, scale, limit)
            return self._selected(request, self._most, room)

    def _selected(self, request: _Request, most: int, room: int | None) -> Pending:
        selected, count = select(request.candidates, request.wanted, most, room)
        counts = torch.cat([part.int() for one in selected for part in (one.ends, one.enough)])
        counts = torch.cat([counts, count]).to("cpu", non_blocking=True)
        return Pending(request, most, room, selected, counts, self._job.execution.now())

    def finish(self, pending: Pending) -> list[list[ImageBoxes]]:
        """For each suppression threshold, the boxes found in each image, by descending score."""
        pending.done()
        try:
            with torch.inference_mode():
                return self._finished(pending)
        except torch.OutOfMemoryError:
            raise LvdetError(
                "not enough GPU memory to suppress boxes; use a smaller --batch"
            ) from None

    def _finished(self, pending: Pending) -> list[list[ImageBoxes]]:
        *counts, count = pending.counts.tolist()
        if pending.room is not None:
            self._room = 1 << (2 * max(count, LEAST_ROOM)).bit_length()
            if count > pending.room:
                return self.finish(self._selected(pending.request, pending.most, count))
        images = len(pending.ids)
        numbers = np.array(counts).reshape(len(self._nms), 2, images)
        found = [
            self._read(pending, selected, ends)
            for selected, ends in zip(pending.selected, numbers[:, 0], strict=True)
        ]
        short = np.flatnonzero(~numbers[:, 1].all(axis=0))
        if 2 * len(short) > images:
            self._most = max(self._most, 2 * pending.most)
        for image in short.tolist():  # each by itself: one that is odd has no others look at more
            alone = self._selected(pending.request.of(image), 2 * pending.most, None)
            for of_threshold, (again,) in zip(found, self.finish(alone), strict=True):
                of_threshold[image] = again
        return found

    def _read(
        self, pending: Pending, selected: Selected, ends: NDArray[np.int64]
    ) -> list[ImageBoxes]:
        """The selected boxes in host memory, by image."""
        request, number = pending.request, int(ends[-1])
        with nullcontext() if self._copies is None else torch.cuda.stream(self._copies):
            place = selected.place[:number]
            _, rows, classes = request.candidates.score.shape
            image = place // (rows * classes)
            corners = selected.box[:number].double() * request.scale[image]
            corners = torch.minimum(corners, request.limit[image]).clamp(min=0)
            columns = [
                column.to("cpu", non_blocking=True)
                for column in (corners, selected.score[:number], place % classes)
            ]
            if self._copies is not None:
                self._copies.synchronize()
        parts = [np.split(column.numpy(), ends[:-1]) for column in columns]
        return list(zip(*parts, strict=True))
