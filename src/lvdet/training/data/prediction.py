"""Batches of images without annotations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from lvdet.training.configuration import config
from lvdet.training.data.batch import Batch
from lvdet.training.data.collate import stack
from lvdet.training.data.image_files import read_picture
from lvdet.training.data.loader_workers import work_ahead
from lvdet.training.data.resize import prediction_input, prediction_size, resized
from lvdet.training.data.training_samples import resize_picture


@dataclass(frozen=True)
class PredictionBatch:
    """Some images to predict.

    ids: [B] of the images
    original_size: int64[B, 2] height and width of the files' images
    """

    batch: Batch
    ids: list[int]
    original_size: Tensor

    def pin_memory(self) -> PredictionBatch:
        """The same batch in pinned memory."""
        return PredictionBatch(self.batch.pin_memory(), self.ids, self.original_size.pin_memory())


def prediction_batches(
    images: Sequence[tuple[int, Path]], size: config.Input, batch: int, workers: int
) -> Iterator[PredictionBatch]:
    """The images in the given order, `batch` at a time, at the size for prediction; the last batch
    may be smaller."""
    size = prediction_input(size)
    side = prediction_size(size)
    other = side if size.by == "longest" else max(side, size.largest)

    def jobs() -> Iterator[Sequence[tuple[int, Path]]]:
        return (images[first : first + batch] for first in range(0, len(images), batch))

    return work_ahead(partial(_make_batch, size), jobs, workers, 3 * batch * side * other)


def _make_batch(size: config.Input, images: Sequence[tuple[int, Path]]) -> PredictionBatch:
    side = prediction_size(size)
    pictures = [read_picture(path) for _, path in images]
    originals = [(picture.height, picture.width) for picture in pictures]
    pixels, sizes = stack(
        [
            resize_picture(picture, resized(*original, side, size))
            for picture, original in zip(pictures, originals, strict=True)
        ]
    )
    seed = torch.zeros(len(images), dtype=torch.int64)
    return PredictionBatch(
        Batch(pixels, sizes, seed), [name for name, _ in images], torch.tensor(originals)
    )
