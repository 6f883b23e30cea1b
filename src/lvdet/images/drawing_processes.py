"""Runs work in several processes, with results in order; interrupts leave nothing running."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TypeVar

from lvdet.errors import OutputError

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_order(
    work: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Generator[Result]:
    """work(task) for each task, in order, computed by this many processes; 1 is this one.

    Close it to end the processes early. What `work` raises is raised here.
    """
    if workers == 1 or len(tasks) < 2:
        yield from map(work, tasks)
        return
    pool = ProcessPoolExecutor(
        min(workers, len(tasks)), multiprocessing.get_context("spawn"), initializer=_settle
    )
    try:
        with _deaf_children(), _single_threads():
            futures = [pool.submit(work, task) for task in tasks]
        futures.reverse()
        while futures:
            yield futures.pop().result()  # let go of, so that results do not pile up
    except BrokenProcessPool:
        raise OutputError(
            "a worker process was killed, probably for lack of memory; use fewer --workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started meanwhile do not hear Ctrl-C: this one tells them when to end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


#: How many threads the libraries start that NumPy may multiply matrices with.
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


@contextmanager
def _single_threads() -> Iterator[None]:
    """Limits processes started meanwhile to one thread each for small matrix products: with one
    thread per core in every process, they would mostly wait for each other."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _settle() -> None:
    """In a worker: ignores Ctrl-C, and ends when its parent process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def end_with_parent() -> None:
            wait([sentinel])
            os._exit(1)

        threading.Thread(target=end_with_parent, daemon=True).start()
