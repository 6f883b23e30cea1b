"""Steps recorded as CUDA graphs.

A step starts thousands of kernels, and for small images the host needs longer to start them than
the GPU to run them. A recorded step is started by two calls. A record holds for tensors of one
size at one place in memory, so batches are copied to where it reads them.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import fields
from typing import NamedTuple

import torch
from torch import Tensor

from lvdet.training.data.batch import Batch, Objects
from lvdet.training.loop.step import arithmetic
from lvdet.training.model.detector import Detector, Samples

#: Steps of a size before it is recorded; recording costs about what it saves in this many steps.
SEEN = 30
#: Sizes of batches that are recorded.
SIZES = 8
#: Numbers of rows for the foreground that a size is recorded with.
ROOMS = 8
#: Free memory that recording needs, in multiples of what a step needs.
SPARE = 1.5

Size = tuple[int, ...]


class Sightings:
    """How often batches of each size have occurred."""

    def __init__(self) -> None:
        self._of: Counter[Size] = Counter()

    def often(self, size: Size) -> bool:
        """Counts one more; returns whether the size is worth recording, since images of many sizes
        may rarely repeat one."""
        self._of[size] += 1
        return self._of[size] > SEEN and self._of[size] * 2 * SIZES >= self._of.total()


class _Record(NamedTuple):
    """A recorded step.

    batch:   the memory that it reads
    samples: what `begin` leaves for `ends`
    ends:    by the foreground rows they have room for, ascending; each with its losses
    """

    batch: Batch
    samples: Samples
    begin: torch.cuda.CUDAGraph
    ends: dict[int, tuple[torch.cuda.CUDAGraph, Tensor]]


class StepGraphs:
    """Losses and gradients of batches of sizes that come again and again.

    A step is recorded in two parts. Between them the host looks at how many boxes are foreground,
    because most of the mask head's work depends on it.
    """

    def __init__(self, detector: Detector, precision: str) -> None:
        self._detector = detector
        self._precision = precision
        self._trained = [p for p in detector.parameters() if p.requires_grad]
        self._gradients: list[Tensor] = []
        self._names: tuple[str, ...] = ()
        self._seen = Sightings()
        self._records: dict[Size, _Record] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._open = True

    def differentiate(self, batch: Batch) -> dict[str, Tensor] | None:
        """Does what `step.differentiate` does for a batch in one part; returns None, with nothing
        done, if its size is not recorded."""
        size = size_of(batch)
        often = self._seen.often(size)
        record = self._records.get(size)
        if record is None and self._open and often:
            record = self._recorded(batch, size)
        if record is None:
            return None
        copy_into(record.batch, batch)
        record.begin.replay()
        foreground = int(record.samples.foreground)
        graph, row = next(end for room, end in record.ends.items() if room >= foreground)
        graph.replay()
        for parameter, gradient in zip(self._trained, self._gradients, strict=True):
            parameter.grad = gradient
        return dict(zip(self._names, row.clone(), strict=True))

    def _recorded(self, batch: Batch, size: Size) -> _Record | None:
        """Records a size; None if that is impossible."""
        if len(self._records) == SIZES or not _memory_is_free():
            self._open = False
            return None
        try:
            self._records[size] = self._record(batch, size)
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            self._open = False
            message = str(error).strip().splitlines()[0]
            warnings.warn(f"steps are not recorded as CUDA graphs: {message}", stacklevel=2)
        return self._records.get(size)

    def _record(self, batch: Batch, size: Size) -> _Record:
        detector, recipe = self._detector, self._detector.recipe
        if not self._gradients:
            self._gradients = [torch.empty_like(parameter) for parameter in self._trained]
        held = room_like(batch, size[-1])
        copy_into(held, batch)
        begin = torch.cuda.CUDAGraph()
        with self._recording(begin), arithmetic(held, self._precision):
            samples = detector.samples(held)
        most = int(recipe.boxes_sampled * recipe.boxes_foreground_share) * len(held.seed)
        ends = {}
        for room in sorted({-(-most * part // ROOMS) for part in range(1, ROOMS + 1)}):
            end = torch.cuda.CUDAGraph()
            with self._recording(end):
                with arithmetic(held, self._precision):
                    losses = detector.losses(held, samples, room=room)
                row = torch.stack([loss.float() for loss in losses.values()])
                found = torch.autograd.grad(row.sum(), self._trained, retain_graph=True)
                torch._foreach_copy_(self._gradients, found)
                row = row.detach()
            self._names = tuple(losses)
            ends[room] = end, row
            del losses, found
        kept = samples._replace(features=samples.features._replace(pyramid=[]), losses={})
        return _Record(held, kept, begin, ends)

    def _recording(self, graph: torch.cuda.CUDAGraph) -> torch.cuda.graph:
        """Other threads may continue meanwhile: they copy batches to pinned memory."""
        return torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local")


def size_of(batch: Batch) -> Size:
    """Of the images, and of the room for objects, as a power of two."""
    assert batch.objects is not None
    return (*batch.pixels.shape, max(16, 1 << (batch.objects.label.shape[1] - 1).bit_length()))


def room_like(batch: Batch, room: int) -> Batch:
    """Memory for a batch with the given room for objects per image."""

    def wider(tensor: Tensor) -> Tensor:
        return tensor.new_zeros(len(tensor), room, *tensor.shape[2:])

    objects = batch.objects
    assert objects is not None
    return Batch(
        torch.empty_like(batch.pixels),
        torch.empty_like(batch.size),
        torch.empty_like(batch.seed),
        Objects(*(wider(getattr(objects, field.name)) for field in fields(Objects))),
    )


def copy_into(held: Batch, batch: Batch) -> None:
    """Copies a batch to where a record reads it; unused room for objects is marked empty."""
    assert held.objects is not None
    held.objects.label.fill_(-1)
    for source, target in zip(batch.tensors, held.tensors, strict=True):
        part = target if source.shape == target.shape else target[:, : source.shape[1]]
        part.copy_(source)


def _memory_is_free() -> bool:
    """Whether there is enough memory for a step twice: graphs keep what they use."""
    torch.cuda.empty_cache()
    step = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
    return torch.cuda.mem_get_info()[0] > (1 + SPARE) * step
