"""Batches on the device, copied while it works on the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

import torch
from torch import Tensor

from lvdet.train.batch import Batch, Objects

#: Steps that the host may be ahead of a GPU; each keeps a batch in its memory.
AHEAD = 2


def device_batches(
    batches: Iterable[Batch], device: torch.device, channels_last: bool
) -> Iterator[Batch]:
    """The batches on a device, in order."""
    if device.type != "cuda":
        for batch in batches:
            yield _arranged(batch.to(device), channels_last)
        return
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    done: deque[torch.cuda.Event] = deque()
    for batch in batches:
        if len(done) >= AHEAD:
            done.popleft().synchronize()
        with torch.cuda.stream(side):
            moved = _arranged(batch.to(device), channels_last)
        here = torch.cuda.current_stream(device)
        here.wait_stream(side)
        for tensor in _tensors(moved):
            tensor.record_stream(here)
        yield moved
        done.append(here.record_event())


def _arranged(batch: Batch, channels_last: bool) -> Batch:
    if not channels_last:
        return batch
    return replace(batch, pixels=batch.pixels.contiguous(memory_format=torch.channels_last))


def _tensors(batch: Batch) -> list[Tensor]:
    objects = batch.objects
    mine = [getattr(objects, f.name) for f in fields(Objects)] if objects else []
    return [batch.pixels, batch.size, batch.seed, *mine]
