"""Processes that make batches ahead of time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch.utils import data

from lvdet.errors import InputError

T = TypeVar("T")

#: Processes at most where as many as there are cores were asked for, and batches that each of
#: them is ahead.
MOST = 8
AHEAD = 4
SHARED_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class _Failure:
    """An InputError on its way from a worker: raised there, it would arrive as a traceback."""

    text: str


@dataclass(frozen=True)
class _Work(data.Dataset[Any], Generic[T]):
    make: Callable[[Any], T]

    def __getitem__(self, job: Any) -> T | _Failure:
        try:
            return self.make(job)
        except InputError as error:
            return _Failure(str(error))


class _Jobs(data.Sampler[Any]):
    def __init__(self, jobs: Callable[[], Iterator[Any]]) -> None:
        self._jobs = jobs

    def __iter__(self) -> Iterator[Any]:
        return self._jobs()


def work_ahead(
    make: Callable[[Any], T], jobs: Callable[[], Iterator[Any]], workers: int, size: int
) -> Iterator[T]:
    """What `make` makes of each job, in the order of the jobs.

    workers: processes; 0: none beside this one, -1: one a core, up to MOST
    size:    bytes of the largest outcome, roughly

    Where there is a GPU the outcomes' memory is pinned.
    """
    workers, ahead = plan(workers, size)
    loader: data.DataLoader[Any] = data.DataLoader(
        _Work(make),
        batch_size=None,
        sampler=_Jobs(jobs),
        num_workers=workers,
        prefetch_factor=ahead if workers else None,
        collate_fn=_as_it_is,
        pin_memory=torch.cuda.is_available(),
        generator=torch.Generator(),  # else it would take a number from the run's
    )
    try:
        for outcome in loader:
            if isinstance(outcome, _Failure):
                raise InputError(outcome.text)
            yield outcome
    except RuntimeError as error:
        if not str(error).startswith("DataLoader worker"):
            raise
        raise InputError(
            f"one of {workers} processes that load images was ended from outside, perhaps for "
            "want of memory: try fewer, with run.workers"
        ) from None


def plan(workers: int, size: int) -> tuple[int, int]:
    """Processes, and batches each is ahead, so that all of them have room in shared memory.

    Containers often have 64 MB of it, and a worker that finds none left is killed.
    """
    if workers < 0:
        workers = min(MOST, cores())
    try:
        room = shutil.disk_usage(SHARED_MEMORY).free * 3 // 4
    except OSError:
        return workers, AHEAD
    batches = room // max(size, 1)
    workers = min(workers, batches // 2)
    return workers, max(1, min(AHEAD, batches // max(workers, 1) - 1))


def cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1


def _as_it_is(outcome: Any) -> Any:
    return outcome
