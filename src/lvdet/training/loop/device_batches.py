"""Copies batches to the device while it works on the previous one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

import torch

from lvdet.training.data.batch import Batch

#: Steps that the host may be ahead of a GPU; each keeps a batch in its memory.
AHEAD = 2


def device_batches(
    batches: Iterable[Batch], device: torch.device, channels_last: bool
) -> Iterator[Batch]:
    """The batches on a device, in order."""
    if device.type != "cuda":
        for batch in batches:
            yield batch.to(device, channels_last=channels_last)
        return
    side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    done: deque[torch.cuda.Event] = deque()
    for batch in batches:
        if len(done) >= AHEAD:
            done.popleft().synchronize()
        with torch.cuda.stream(side):
            moved = batch.to(device, channels_last=channels_last)
        here = torch.cuda.current_stream(device)
        here.wait_stream(side)
        for tensor in moved.tensors:
            tensor.record_stream(here)
        yield moved
        done.append(here.record_event())
