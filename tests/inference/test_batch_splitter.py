"""Batches that a GPU's memory is too small for are taken in parts."""

from __future__ import annotations

import pytest
import torch

from lvdet.errors import LvdetError
from lvdet.inference.batches import BatchSplitter
from lvdet.training.data.batch import Batch
from lvdet.training.data.prediction import PredictionBatch


def batch(images: int) -> PredictionBatch:
    rows = torch.arange(images)
    pixels = rows.to(torch.uint8)[:, None, None, None].expand(images, 3, 32, 32)
    size = torch.full((images, 2), 32)
    return PredictionBatch(Batch(pixels, size, rows), rows.tolist(), size + rows[:, None])


class Room:
    """Work that fits only so many images."""

    def __init__(self, images: int) -> None:
        self.images = images
        self.sizes: list[int] = []

    def __call__(self, part: PredictionBatch) -> list[int]:
        self.sizes.append(len(part.ids))
        if len(part.ids) > self.images:
            raise torch.OutOfMemoryError
        rows = torch.tensor(part.ids)
        assert torch.equal(part.batch.seed, rows)
        assert torch.equal(part.original_size[:, 0], 32 + rows)
        assert torch.equal(part.batch.pixels[:, 0, 0, 0], rows.to(torch.uint8))
        return part.ids


def test_parts_become_smaller_until_they_fit() -> None:
    splitter, work = BatchSplitter(8), Room(2)
    # 7 do not fit, nor 3; then one at a time, for this batch and the next.
    assert [*splitter.run(batch(7), work)] == [[n] for n in range(7)]
    assert work.sizes == [7, 3] + [1] * 7
    assert [*splitter.run(batch(2), work)] == [[0], [1]]
    assert splitter.notes == ["not enough GPU memory for 7 images per batch; continuing with fewer"]


def test_a_batch_that_fits_stays_whole() -> None:
    splitter, work = BatchSplitter(8), Room(8)
    whole = batch(8)
    assert [*splitter.run(whole, work)] == [list(range(8))]
    assert splitter.notes == []
    assert [*splitter.run(batch(3), work)] == [[0, 1, 2]]


def test_one_image_has_to_fit() -> None:
    with pytest.raises(LvdetError, match="not enough GPU memory for a single image"):
        list(BatchSplitter(4).run(batch(2), Room(0)))
