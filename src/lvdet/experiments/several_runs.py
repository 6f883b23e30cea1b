"""Carries out runs one after another in this process, or several at once in their own processes."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from lvdet.errors import LvdetError
from lvdet.experiments.one_run import Workshop, conduct, trained
from lvdet.experiments.run_graph import Graph, Run
from lvdet.files.progress import Progress, track
from lvdet.files.writing import make_folder, write_json, write_text
from lvdet.threads import set_threads, thread_count

#: Seconds that processes have to save their work before the deadline; seconds between two polls.
GRACE, LOOK = 15.0, 0.1
_OUTBOX = "outbox"
_THREADS = "OMP_NUM_THREADS"
#: Receives each result as soon as it is ready.
Finished = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Job:
    """Runs for one process; a run that the others depend on comes first."""

    graph: Graph
    runs: tuple[Run, ...]
    conditions: tuple[str, ...]
    workshop: Workshop

    @property
    def network(self) -> str:
        """What its training time depends on most."""
        model = self.runs[0].config.model
        return f"{model.kind}, {model.backbone}"

    def make(self, finished: Finished) -> None:
        """Carries out all runs."""
        scale, root = self.graph.scale, self.runs[0].root
        if root not in self.runs:
            trained(root, scale, self.workshop)
        for run in self.runs:
            names, parts = self.graph.names[run.key], self.graph.parts[run.key]
            finished(conduct(run, scale, names, parts, self.conditions, self.workshop))


def make_in_turn(jobs: Sequence[Job], finished: Finished, progress: Progress | None = None) -> None:
    """Carries out jobs one after another, in this process."""
    done, total = 0, sum(len(job.runs) for job in jobs)
    with track(progress, "runs", "runs") as update:

        def count(result: dict[str, Any]) -> None:
            nonlocal done
            finished(result)
            done += 1
            if update is not None:
                update(done, total)

        for job in jobs:
            job.make(count)


def make_at_once(
    jobs: Sequence[Job],
    finished: Finished,
    number: int,
    end: float | None = None,
    progress: Progress | None = None,
) -> None:
    """Carries out several jobs at once, each in its own process, until all are done or the
    monotonic clock reaches `end`.

    A job is not started if earlier runs of the same network took longer than the time left. Jobs
    unfinished at the end save their work, and the next call resumes them. A job that fails does
    not stop the others.
    """
    waiting = [*jobs]
    total = sum(len(job.runs) for job in jobs)
    running: dict[BaseProcess, tuple[Job, float]] = {}
    failures: list[str] = []
    longest: dict[str, float] = {}  # seconds of a run, by network
    done = 0
    context = multiprocessing.get_context("spawn")
    cores = max(1, thread_count() // max(1, min(number, len(jobs))))
    try:
        with track(progress, "runs", "runs") as update, _threads_of_processes(cores):
            while waiting or running:
                left = math.inf if end is None else end - GRACE - time.monotonic()
                if left <= 0:
                    break
                for job in fitting(waiting, longest, left)[: number - len(running)]:
                    waiting.remove(job)
                    job = _with_workers(job, cores)
                    process: BaseProcess = context.Process(target=_work, args=(job, cores))
                    process.start()
                    running[process] = job, time.monotonic()
                if not running:
                    break
                time.sleep(LOOK)
                for process in [*running]:
                    job, since = running[process]
                    ended = not process.is_alive()
                    done += _collect(job, finished)
                    if update is not None:
                        update(done, total)
                    if ended:
                        del running[process]
                        took = (time.monotonic() - since) / len(job.runs)
                        longest[job.network] = max(longest.get(job.network, 0.0), took)
                        failures += _failure(job, process)
    finally:
        _stop([*running])
        for job, _ in running.values():
            _collect(job, finished)
    if failures:
        raise LvdetError(f"{len(failures)} of {len(jobs)} jobs failed: {'; '.join(failures)}")


def fitting(jobs: Iterable[Job], longest: dict[str, float], left: float) -> list[Job]:
    """The jobs that take no longer than the time left, by the longest run of the same network;
    all jobs of networks that did not run yet."""
    return [job for job in jobs if longest.get(job.network, 0.0) * len(job.runs) <= left]


def collect_left(folder: Path, finished: Finished) -> int:
    """Collects the results that processes left in a workshop's folder; returns their number."""
    paths = sorted((folder / _OUTBOX).glob("*.json"))
    for path in paths:
        with suppress(ValueError):
            finished(json.loads(path.read_bytes()))
        path.unlink()
    return len(paths)


@contextmanager
def _threads_of_processes(count: int) -> Iterator[None]:
    """Limits PyTorch's threads in processes started meanwhile, unless the user sets them."""
    given = os.environ.get(_THREADS)
    os.environ[_THREADS] = given or str(count)
    try:
        yield
    finally:
        if given is None:
            del os.environ[_THREADS]


def _with_workers(job: Job, cores: int) -> Job:
    """A job whose images are loaded by its share of the cores."""
    return replace(job, workshop=replace(job.workshop, workers=max(1, cores - 1)))


def _work(job: Job, threads: int) -> None:
    """The work of a process: results and errors go to files in the outbox."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    set_threads(threads)
    _end_with_parent()

    def finished(result: dict[str, Any]) -> None:
        write_json(result, _outbox(job, result["key"], ".json"))

    error = _outbox(job, job.runs[0].key, ".txt")
    make_folder(error.parent)
    error.unlink(missing_ok=True)
    try:
        job.make(finished)
    except Exception as failure:  # whatever it is, the others continue
        write_text(" ".join(f"{failure}".split()) or type(failure).__name__, error)
        if not isinstance(failure, LvdetError):
            raise
        sys.exit(1)


def _end_with_parent() -> None:
    """Makes this process save its work and end when its parent is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()


def _collect(job: Job, finished: Finished) -> int:
    """Collects the finished results of a job."""
    count = 0
    for run in job.runs:
        path = _outbox(job, run.key, ".json")
        if path.is_file():
            finished(json.loads(path.read_bytes()))
            path.unlink()
            count += 1
    return count


def _failure(job: Job, process: BaseProcess) -> list[str]:
    """The error of a process that ended."""
    if process.exitcode == 0:
        return []
    path = _outbox(job, job.runs[0].key, ".txt")
    message = (
        path.read_text(encoding="utf-8") if path.is_file() else f"exit code {process.exitcode}"
    )
    return [f"{job.runs[0]}: {message}"]


def _outbox(job: Job, key: str, ending: str) -> Path:
    """Where a process leaves a result or an error."""
    return job.workshop.folder / _OUTBOX / f"{key}{ending}"


def _stop(processes: Sequence[BaseProcess]) -> None:
    """Tells processes to save their work, and ends those that do not do so in time."""
    for process in processes:
        process.terminate()
    end = time.monotonic() + GRACE - 2
    for process in processes:
        process.join(max(0.0, end - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()
