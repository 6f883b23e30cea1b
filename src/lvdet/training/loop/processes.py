"""The processes that train together, one per GPU, as started by torchrun."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from lvdet.errors import AnotherProcessError, InputError, LvdetError

#: How long the other processes wait while one evaluates.
PATIENCE = timedelta(days=1)


def mean_over_processes(count: Tensor) -> Tensor:
    """The mean of a tensor over all processes; the tensor itself if there is only one.

    Gradients of the processes are averaged. So a loss whose parts are divided by the mean count
    has the gradient that one process with all images would have.
    """
    if _alone():
        return count
    with torch.no_grad():
        mean = count.detach().clone()
        dist.all_reduce(mean)
        return mean / dist.get_world_size()


def _alone() -> bool:
    there = dist.is_available() and dist.is_initialized()
    return not there or dist.get_world_size() == 1


@dataclass
class Process:
    """One of the processes of a run.

    rank, world: its number, and how many there are
    device:      what it trains on
    control:     a group of all processes for words between their hosts
    """

    rank: int
    world: int
    device: torch.device
    control: Any = None

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files."""
        return self.rank == 0

    def largest(self, number: int) -> int:
        """The largest number that any process passes; hosts wait for each other, devices do not."""
        if self.world == 1:
            return number
        highest = torch.tensor(number)
        dist.all_reduce(highest, dist.ReduceOp.MAX, self.control)
        return int(highest)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Runs a part of each process. None continues before all are done; if one fails, it raises
        its error and the others raise `AnotherProcessError`."""
        failure: Exception | None = None
        try:
            yield
        except Exception as error:
            failure = error
        mine = failure is not None and not isinstance(failure, AnotherProcessError)
        failed = self.largest(self.world - self.rank if mine else 0)
        if failure is not None and (failed == self.world - self.rank or not mine):
            raise failure
        if failed:
            raise AnotherProcessError("another process failed")

    def wait_for_all(self) -> None:
        """Waits until every process has reached this point."""
        if self.world > 1:
            dist.barrier(self.control)


@contextmanager
def joined(device: str | None = None) -> Iterator[Process]:
    """This process among those started by torchrun (RANK, WORLD_SIZE and LOCAL_RANK in the
    environment), or alone.

    device: "cuda" or "cpu"; None: a GPU if there is one.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device is cuda, but PyTorch finds no GPU")
    kind = device or ("cuda" if torch.cuda.is_available() else "cpu")
    rank, world, local = (_number(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    place = torch.device("cpu")
    if kind == "cuda":
        if local >= torch.cuda.device_count():
            raise InputError(
                f"process {local} has no GPU: this machine has {torch.cuda.device_count()}; "
                "start one process per GPU"
            )
        place = torch.device("cuda", local)
        torch.cuda.set_device(place)
    if world <= 1:
        yield Process(0, 1, place)
        return
    try:
        dist.init_process_group("nccl" if kind == "cuda" else "gloo")
        control = dist.new_group(backend="gloo", timeout=PATIENCE)
        process = Process(rank, world, place, control)
        yield process
        process.wait_for_all()
    except RuntimeError as error:  # DistBackendError is one
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            first = str(error).strip().splitlines()[0]
            raise LvdetError(
                f"process {rank} lost contact with the others, see their messages ({first[:120]})"
            ) from None
        raise
    finally:
        with suppress(Exception):
            dist.destroy_process_group()


def _number(name: str) -> int:
    text = os.environ.get(name, "1" if name == "WORLD_SIZE" else "0")
    if not text.isdecimal():
        raise InputError(f"environment variable {name} is {text!r}, expected a number")
    return int(text)


def parallel(model: nn.Module, process: Process) -> nn.Module:
    """The model, with gradients averaged over the processes.

    Every parameter that is trained takes part in each step, with fixed-size samples also where
    an image has no object: none is looked for that does not.
    """
    if process.world == 1:
        return model
    # Of weights of 1 x 1 pixels, which in channels-last memory have strides that mean nothing.
    warnings.filterwarnings("ignore", "Grad strides do not match bucket view strides")
    known = inspect.signature(DistributedDataParallel).parameters
    sync = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
    options: dict[str, Any] = {sync: process.device.type == "cpu" and has_statistics(model)}
    return DistributedDataParallel(
        model,
        device_ids=[process.device] if process.device.type == "cuda" else None,
        gradient_as_bucket_view=True,
        **options,
    )


def has_statistics(model: nn.Module) -> bool:
    """Whether batch normalisation uses the statistics of batches."""
    return any(isinstance(module, _BatchNorm) for module in model.modules())


def with_shared_statistics(model: nn.Module, process: Process) -> nn.Module:
    """Batch normalisation over the images of all processes; requires GPUs."""
    if process.world == 1 or process.device.type != "cuda" or not has_statistics(model):
        return model
    convert: Any = nn.SyncBatchNorm.convert_sync_batchnorm
    converted: nn.Module = convert(model)
    return converted
