"""The device and precision of a detector."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lvdet.errors import InputError
from lvdet.threads import set_threads, thread_count
from lvdet.training.data.batch import Batch
from lvdet.training.data.loader_workers import sharing
from lvdet.training.loop.processes import Process, joined

#: A function that returns when something is done.
Wait = Callable[[], None]


@dataclass(frozen=True)
class Execution:
    """How batches reach a detector, and its precision.

    channels_last: whether pixels lie beside each other with their colours, as in training
    precision:     "fp32", or "bf16" for what does not need more; weights are float32 in both
    """

    device: torch.device
    channels_last: bool = False
    precision: str = "fp32"

    @classmethod
    def of(cls, detector: nn.Module, channels_last: bool, precision: str) -> Execution:
        """The execution of a detector where it is. On a GPU only, its weights are rearranged in
        memory if necessary."""
        device = next((tensor.device for tensor in detector.parameters()), torch.device("cpu"))
        on_gpu = device.type == "cuda"
        if precision == "bf16" and not (on_gpu and torch.cuda.is_bf16_supported(False)):
            raise InputError("precision bf16 needs a GPU that supports it; use fp32")
        channels_last = channels_last and on_gpu
        if channels_last:
            detector.to(memory_format=torch.channels_last)
        return cls(device, channels_last, precision)

    @property
    def asynchronous(self) -> bool:
        """Whether the host may continue while the device works."""
        return self.device.type == "cuda"

    def moved(self, batch: Batch) -> Batch:
        """The batch on the device."""
        return batch.to(self.device, channels_last=self.channels_last)

    def uploaded(self, values: NDArray[Any]) -> Tensor:
        """An array on the device; a copy to a GPU is asynchronous."""
        tensor = torch.from_numpy(values)
        if self.device.type != "cuda":
            return tensor
        return tensor.pin_memory().to(self.device, non_blocking=True)

    def now(self) -> Wait:
        """A function that waits until everything the device was given so far is done."""
        if self.device.type != "cuda":
            return _no_wait
        event: torch.cuda.Event = torch.cuda.current_stream(self.device).record_event()
        return event.synchronize

    def autocast(self) -> AbstractContextManager[None]:
        """The context to call the detector in."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.precision == "bf16")

    def current(self) -> AbstractContextManager[None]:
        """Makes its GPU the current one, on which Triton's kernels start."""
        return torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext()


def _no_wait() -> None:
    """Does not wait."""


def device_of(name: str | None) -> torch.device:
    """The device with a name such as "cuda:1"; by default a GPU if there is one.

    A GPU with a number becomes the current one: Triton starts its kernels there.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        device = torch.device(name or ("cuda" if gpus else "cpu"))
    except RuntimeError:
        raise InputError(
            f"--device is {name!r}, expected a name such as cuda, cuda:1 or cpu"
        ) from None
    if device.type == "cuda" and not gpus:
        raise InputError(f"--device is {name!r}, but PyTorch finds no GPU")
    if device.type == "cuda" and (device.index or 0) >= gpus:
        raise InputError(f"--device is {name!r}, but there are {gpus} GPUs")
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)
    return device


@contextmanager
def predicting_processes(device: str | None) -> Iterator[Process]:
    """This process among those started by torchrun, each with the GPU of its rank and its share of
    the cores; or alone, on a device as for `device_of`."""
    if os.environ.get("WORLD_SIZE", "1") == "1":
        yield Process(0, 1, device_of(device))
        return
    if device not in (None, "cuda", "cpu"):
        raise InputError(
            f"--device is {device!r}, but each of several processes uses the GPU of its own "
            "rank: pass cuda or cpu"
        )
    with joined(device) as process:
        if not os.environ.get("LVDET_THREADS"):
            set_threads(max(1, thread_count() // sharing()))
        yield process
