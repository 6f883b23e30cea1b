"""What an evaluation on a cluster will take, from the sizes of its shards and one of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lvdet.cluster import tasks
from lvdet.cluster.class_floors import ClassFloors
from lvdet.cluster.engine import cpus, fetch, put, start
from lvdet.cluster.shards import Shards, room_of, sizes_of
from lvdet.cluster.tasks import Job
from lvdet.errors import InputError
from lvdet.evaluation.protocols import Plan, evaluate_pair
from lvdet.files.annotation_files import read_ground_truth
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.partials.contribution import Form, pair_of
from lvdet.partials.part_columns import joined
from lvdet.tables.ground_truth import GroundTruth
from lvdet.threads import set_threads

#: Bytes of memory of a process before it reads anything.
_PROCESS = 200_000_000
_REPEATS = 3
_NO_IMAGES = np.zeros(0, dtype=np.int32)


@dataclass(frozen=True)
class Calibration:
    """One shard, read, matched and evaluated by one task.

    nbytes: of the file; rows: in it; portion_bytes, part_bytes: of its rows, before and after they
    are matched; truth_bytes: of the annotations
    verb_seconds: however many rows there are; join_seconds: for each time as many rows
    """

    nbytes: int
    rows: int
    portion_bytes: int
    part_bytes: int
    truth_bytes: int
    read_seconds: float
    match_seconds: float
    verb_seconds: float
    join_seconds: float


@dataclass(frozen=True)
class RunPlan:
    """The plan for a number of CPUs.

    moved: bytes of rows between tasks, before and after they are matched
    seconds: while shards are read, while they are matched, and for the verb itself
    task_bytes, verb_bytes: memory of a task that reads, and of the verb, at most
    """

    shards: int
    nbytes: int
    rows: int
    kept: int
    cpus: int
    tasks: int
    moved: tuple[int, int]
    seconds: tuple[float, float, float]
    task_bytes: int
    verb_bytes: int

    def lines(self) -> list[str]:
        """What to print."""
        read, matched = (_size(part) for part in self.moved)
        return [
            f"shards   {self.shards:,} with {_size(self.nbytes)}, about {self.rows:,} detections",
            f"tasks    {self.tasks:,} on {self.cpus:,} CPUs",
            f"moved    {read} between reading and matching, {matched} after it",
            f"kept     {self.kept:,} detections that the budgets can use",
            f"time     {sum(self.seconds):,.0f} s: reading {self.seconds[0]:,.0f} s, matching "
            f"{self.seconds[1]:,.0f} s, the numbers {self.seconds[2]:,.0f} s",
            f"memory   {_size(self.task_bytes)} per task, {_size(self.verb_bytes)} for the numbers",
        ]


def plan_run(
    gt: str | os.PathLike[str], shards: Shards, *, plan: Plan, options: MatchOptions, nodes: int
) -> RunPlan:
    """The plan for so many nodes like those of the cluster that Ray is connected to, on which one
    of the smallest shards is read for it."""
    if nodes < 1:
        raise InputError(f"nodes is {nodes}, expected 1 or more")
    truth = read_ground_truth(gt)
    needs = plan.needs(truth)
    place = len(shards.paths), room_of(truth), shards.folder
    job = put(Job(truth, needs, plan.options(options), *place))
    sizes = sizes_of(shards.paths, shards.folder)
    small = min((size, number) for number, size in enumerate(sizes) if size)[1] if any(sizes) else 0
    found = fetch(start(calibrated, job, shards.paths[small], plan))
    return planned(sizes, found, needs, truth, nodes * cpus())


def calibrated(job: Job, path: os.PathLike[str], plan: Plan) -> Calibration:
    """Reads, matches and evaluates one shard."""
    set_threads(1)
    begin = time.monotonic()
    floors = ClassFloors.unknown(job.needs, len(job.gt.categories))
    facts, portion, _ = tasks.read_shard(job, path, 0, job.room, floors)  # type: ignore[arg-type]
    assert portion is not None
    read = time.monotonic()
    options = job.options.resolved(masks=facts.masks and job.gt.masks is not None)
    known = Job(job.gt, job.needs, options, job.shards, job.room, job.folder)
    part = tasks.match_portions(known, facts.boxes_given, None, _NO_IMAGES, portion)
    matched = time.monotonic()
    form = Form(str(options.iou), facts.masks, facts.boxes_given)

    def verb() -> None:
        evaluate_pair(pair_of(job.gt, part, options, form, str(path)), plan)

    truth = len(job.gt) * 64 + (0 if job.gt.masks is None else job.gt.masks.data.nbytes)
    return Calibration(
        int(facts.files[0]["bytes"]),
        facts.rows,
        facts.nbytes,
        part.nbytes,
        truth,
        read - begin,
        matched - read,
        _least_seconds(verb),
        _least_seconds(lambda: joined([part])),
    )


def _least_seconds(work: Callable[[], object]) -> float:
    """The least time of a few, the first of which also imports."""
    least = float("inf")
    for _ in range(_REPEATS):
        begin = time.process_time()
        work()
        least = min(least, time.process_time() - begin)
    return least


def planned(
    sizes: list[int], one: Calibration, needs: list[Need], gt: GroundTruth, cpus: int
) -> RunPlan:
    """The model: work in proportion to bytes or rows, and never faster than the largest shard."""
    rows_per_byte = one.rows / max(one.nbytes, 1)
    rows = np.array(sizes) * rows_per_byte
    total, count = float(rows.sum()), max(one.rows, 1)
    kept = _kept(rows, needs, gt, room_of(gt))
    final = min(total, _most(needs, gt)) if total > room_of(gt) else total
    read = np.array(sizes) * (one.read_seconds / max(one.nbytes, 1))
    match_seconds = kept * one.match_seconds / count
    portion, part = one.portion_bytes / count, one.part_bytes / count
    return RunPlan(
        len(sizes),
        sum(sizes),
        round(total),
        round(final),
        cpus,
        2 * len(sizes) + 1,
        (round(kept * portion), round(final * part)),
        (
            max(float(read.sum()) / cpus, float(read.max(initial=0))),
            match_seconds / min(cpus, max(len(sizes), 1)),
            one.verb_seconds + one.join_seconds * final / count,
        ),
        _PROCESS + one.truth_bytes + round(2 * portion * float(rows.max(initial=0))),
        _PROCESS + one.truth_bytes + round(2 * part * final),
    )


def _most(needs: list[Need], gt: GroundTruth) -> float:
    """The rows that the budgets can keep at most."""
    found = 0.0
    for kind, groups in ((PerClass, len(gt.categories)), (PerImage, len(gt.images))):
        limits = [need.budget.limit for need in needs if isinstance(need.budget, kind)]
        found += max(limits, default=0) * groups
    known = all(isinstance(need.budget, PerClass | PerImage) for need in needs)
    return found if known else np.inf


def _kept(
    rows: np.ndarray[tuple[int], np.dtype[np.float64]],
    needs: list[Need],
    gt: GroundTruth,
    room: int,
) -> float:
    """The rows that shards give out: all until there is no room, then what is above the floors that
    the shards before have shown, or among the best of an image."""
    most, total = _most(needs, gt), float(rows.sum())
    if total <= room or not np.isfinite(most):
        return total
    before = np.cumsum(rows) - rows
    share = np.minimum(most / np.maximum(before + rows, 1), 1)
    return float(np.where(before < room, rows, rows * share).sum())


def _size(nbytes: float) -> str:
    for unit, step in (("GB", 1e9), ("MB", 1e6)):
        if nbytes >= step:
            return f"{nbytes / step:,.1f} {unit}"
    return f"{nbytes / 1e3:,.0f} kB"
