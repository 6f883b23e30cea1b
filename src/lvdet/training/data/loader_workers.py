"""Worker processes that prepare batches ahead of time."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from torch.utils import data

from lvdet.errors import InputError, LvdetError
from lvdet.operating_system import core_count

T = TypeVar("T")

#: The most processes for a setting of one per core, and the batches that each prepares ahead.
MOST = 8
AHEAD = 4
SHARED_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class _Failure:
    """An error to pass on from a worker; raised in the worker, it would arrive as a traceback."""

    text: str


@dataclass(frozen=True)
class _Work(data.Dataset[Any], Generic[T]):
    make: Callable[[Any], T]

    def __getitem__(self, job: Any) -> T | _Failure:
        try:
            return self.make(job)
        except MemoryError:
            return _Failure("not enough memory to load images; try fewer run.workers")
        except (LvdetError, OSError) as error:
            return _Failure(str(error))


class _Jobs(data.Sampler[Any]):
    def __init__(self, jobs: Callable[[], Iterator[Any]]) -> None:
        self._jobs = jobs

    def __iter__(self) -> Iterator[Any]:
        return self._jobs()


def work_ahead(
    make: Callable[[Any], T], jobs: Callable[[], Iterator[Any]], workers: int, size: int
) -> Iterator[T]:
    """The results of `make` for each job, in order.

    workers: processes; 0: only this one, -1: one per core, up to MOST
    size:    bytes of the largest result, roughly

    If there is a GPU, the memory of the results is pinned. Only this process handles signals to
    stop; the workers end when it does.
    """
    requested = workers
    workers, ahead = plan(requested, size)
    if requested and not workers:
        _print_once(
            f"{SHARED_MEMORY} has no room for 2 batches of {size / 1e6:,.0f} MB per process, so "
            "images are loaded without extra processes, which is slow; enlarge it "
            "(docker run --shm-size)"
        )
    loader: data.DataLoader[Any] = data.DataLoader(
        _Work(make),
        batch_size=None,
        sampler=_Jobs(jobs),
        num_workers=workers,
        prefetch_factor=ahead if workers else None,
        collate_fn=_as_it_is,
        worker_init_fn=_ignore_signals,
        pin_memory=torch.cuda.is_available(),
        generator=torch.Generator(),  # without one, it would draw from the run's generator
    )
    try:
        for outcome in _quietly(loader):
            if isinstance(outcome, _Failure):
                raise InputError(outcome.text)
            yield outcome
    except RuntimeError as error:
        if not str(error).startswith("DataLoader worker"):
            raise
        raise InputError(
            f"one of {workers} processes that load images was killed, probably for lack "
            "of memory; try fewer run.workers"
        ) from None


def _quietly(loader: data.DataLoader[Any]) -> Iterator[Any]:
    """The loader's results. When a worker dies, torch's signal handler would raise wherever the
    main thread happens to be, in the middle of a step or of a file. Without that handler, torch
    raises in here, when the worker's next result is due."""
    if sys.platform == "win32":  # which has no such signal
        outcomes = iter(loader)
    else:
        before = signal.getsignal(signal.SIGCHLD)
        outcomes = iter(loader)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGCHLD, before or signal.SIG_DFL)
    return outcomes


def _ignore_signals(worker: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


@cache
def _print_once(text: str) -> None:
    """Prints a line to stderr once, from the first process only."""
    if os.environ.get("RANK", "0") == "0":
        print(f"note: {text}", file=sys.stderr, flush=True)


def plan(workers: int, size: int) -> tuple[int, int]:
    """The number of workers, and of batches that each prepares ahead, so that they all fit in
    shared memory.

    Containers often have only 64 MB, and a worker is killed if none is left. The processes that
    torchrun started on this machine share cores and memory.
    """
    beside = sharing()
    if workers < 0:
        workers = min(MOST, max(1, core_count() // beside))
    try:
        room = shutil.disk_usage(SHARED_MEMORY).free * 3 // 4 // beside
    except OSError:
        return workers, AHEAD
    batches = room // max(size, 1)
    workers = min(workers, batches // 2)
    return workers, max(1, min(AHEAD, batches // max(workers, 1) - 1))


def sharing() -> int:
    """The number of processes that torchrun started on this machine."""
    text = os.environ.get("LOCAL_WORLD_SIZE", "1")
    return max(1, int(text)) if text.isdecimal() else 1


def _as_it_is(outcome: Any) -> Any:
    return outcome
