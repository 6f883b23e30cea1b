"""Batches that stay the same when a prediction resumes, and that fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch

from lvdet.errors import LvdetError
from lvdet.training.data.batch import Batch
from lvdet.training.data.prediction import PredictionBatch

Image = tuple[int, Path]
T = TypeVar("T")


def unfinished(images: Sequence[Image], batch: int, wanted: Container[int]) -> list[Image]:
    """The batches, in order, that contain any wanted image. They are always complete, because the
    padding of an image to its neighbours' size slightly affects its detections; so batches must not
    depend on where an earlier process ended."""
    batches = (images[begin : begin + batch] for begin in range(0, len(images), batch))
    return [image for some in batches if any(one[0] in wanted for one in some) for image in some]


class BatchSplitter:
    """Processes batches, in ever smaller parts if a GPU's memory is too small.

    limit: images at a time
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.notes: list[str] = []

    def run(self, given: PredictionBatch, work: Callable[[PredictionBatch], T]) -> Iterator[T]:
        """The results of the parts of a batch. `work` must not leave anything behind when it runs
        out of memory."""
        begin = 0
        while begin < len(given.ids):
            part = _part(given, begin, begin + self.limit)
            done = self._attempt(part, work)
            if done is None:
                self._shrink(len(part.ids))
                continue
            begin += len(part.ids)
            yield done[0]

    def _attempt(
        self, part: PredictionBatch, work: Callable[[PredictionBatch], T]
    ) -> tuple[T] | None:
        """None if memory is too small; the error's frames, which hold tensors, are then gone."""
        try:
            return (work(part),)
        except torch.OutOfMemoryError:
            return None

    def _shrink(self, images: int) -> None:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if images == 1:
            raise LvdetError(
                "not enough GPU memory for a single image; use another --device or a higher --score"
            )
        if not self.notes:
            self.notes.append(
                f"not enough GPU memory for {images} images per batch; continuing with fewer"
            )
        self.limit = images // 2


def _part(given: PredictionBatch, begin: int, end: int) -> PredictionBatch:
    """Some images of a batch, with unchanged padding."""
    if begin == 0 and end >= len(given.ids):
        return given
    of = slice(begin, end)
    batch = Batch(given.batch.pixels[of], given.batch.size[of], given.batch.seed[of])
    return replace(given, batch=batch, ids=given.ids[of], original_size=given.original_size[of])
