"""A results file in shards, read and matched by the tasks of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import ray

from lvdet.cluster import tasks
from lvdet.cluster.class_floors import ClassFloors
from lvdet.cluster.tasks import Job, ShardFacts
from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import require_known_class
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.pair_source import PairSource
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.collect import ROOM, ROOM_WITH_BOXES, MaskedFiles
from lvdet.files.detection_files import NamedFiles, may_have_masks, named_files
from lvdet.files.fingerprint import fingerprints
from lvdet.files.progress import Progress, Update, track
from lvdet.files.remote_path import InputPath, RemotePath
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.partials.contribution import Form, pair_of
from lvdet.tables.description import counted
from lvdet.tables.ground_truth import GroundTruth

#: How often a task may be lost with its worker or node.
RETRIES = 20
#: Tasks under way for each CPU while shards are read.
_AHEAD = 2
#: Bytes of portions that one task matches, about; parts that one task merges.
_BLOCK, _FAN_IN = 1 << 27, 8

_task = ray.remote(max_retries=RETRIES)
_read_shard = ray.remote(max_retries=RETRIES, num_returns=3)(tasks.read_shard)
_split_portion = _task(tasks.split_portion)
_match_portions = _task(tasks.match_portions)
_merge_parts = _task(tasks.merge_parts)


@dataclass(frozen=True, eq=False)
class Shards(PairSource):
    """The files of one results file, in order.

    folder: where relative paths begin
    skip_bad: whether shards that cannot be read are left out, which the pair's facts and warnings
        then say
    """

    paths: Sequence[InputPath]
    name: str
    folder: str
    skip_bad: bool = False

    @staticmethod
    def of(
        source: str | os.PathLike[str] | list[str | os.PathLike[str]], *, skip_bad: bool = False
    ) -> Shards:
        """The shards of what `evaluate` takes as a path, pattern or list of paths."""
        files = named_files(source)
        if files is None:
            raise InputError(f"shards are of type {type(source).__name__}, expected paths")
        if any(str(path) == "-" for path in files.paths):
            raise InputError("a cluster cannot read standard input: pass files")
        return Shards(files.paths, files.name, os.getcwd(), skip_bad)

    def pair(
        self,
        gt: GroundTruth | InputPath,
        needs: Callable[[GroundTruth], Sequence[Need]],
        options: MatchOptions,
        progress: Progress | None,
    ) -> Pair:
        truth = gt if isinstance(gt, GroundTruth) else self._annotations(gt, options, progress)
        wanted = needs(truth)
        if options.partners_at is not None or any(need.boxes for need in wanted):
            raise InputError(f"{self.name} is in shards, but this needs all boxes together")
        place = len(self.paths), room_of(truth), self.folder, self.skip_bad
        job = Job(truth, wanted, options, *place)
        with track(progress, f"reading {counted(len(self.paths), 'shard')}") as update:
            shards = _read_all(ray.put(job), job, self.paths, update)
        skipped = [facts.problem for facts in shards.facts if facts.problem is not None]
        if len(skipped) == len(self.paths):
            raise InputError(f"no shard can be read; the first: {skipped[0]}")
        masked = MaskedFiles()
        for path, facts in zip(self.paths, shards.facts, strict=True):
            if facts.rows and options.iou != "bbox":
                masked.note(path, facts.masks)
        has_masks = any(facts.masks for facts in shards.facts)
        late = options.iou is None and has_masks and truth.masks is None
        if late and not isinstance(gt, GroundTruth):
            truth = read_ground_truth(gt, progress=progress)  # the first shard had no masks
        options = options.resolved(masks=has_masks and truth.masks is not None)
        job = replace(job, gt=truth, options=options)
        boxes_given = not shards.rows or any(facts.boxes_given for facts in shards.facts)
        with track(progress, "matching", "tasks") as update:
            part = _matched(job, shards, boxes_given, update)
        form = Form(str(options.iou), has_masks, boxes_given)
        read: list[Mapping[str, Any]] = []
        read += [] if isinstance(gt, GroundTruth) else fingerprints([gt])
        read += [file for facts in shards.facts for file in facts.files]
        pair = pair_of(truth, part, options, form, self.name)
        pair.files, pair.skipped = read, skipped
        if not options.exact_lvis:
            require_known_class(truth, pair.results)
        return pair

    def _annotations(
        self, gt: InputPath, options: MatchOptions, progress: Progress | None
    ) -> GroundTruth:
        masks = options.iou != "bbox"
        if options.iou is None:
            masks = may_have_masks(NamedFiles(list(self.paths), self.name))
        return read_ground_truth(gt, masks=masks, progress=progress)


def room_of(gt: GroundTruth) -> int:
    """The rows that are all kept, needed or not, as where one process reads them."""
    return ROOM_WITH_BOXES if gt.negative is None else ROOM


@dataclass(frozen=True, eq=False)
class _ReadShards:
    """facts: of each shard; portions: references to those that were read
    apart: whether no image is in two shards
    """

    facts: Sequence[ShardFacts]
    portions: list[Any]
    apart: bool

    @property
    def rows(self) -> int:
        return sum(facts.rows for facts in self.facts)


def _read_all(
    job: Any, told: Job, paths: Sequence[InputPath], update: Update | None
) -> _ReadShards:
    """Reads all shards, a bounded number at a time; those that are finished help the next ones to
    drop rows."""
    facts: dict[int, ShardFacts] = {}
    portions: dict[int, Any] = {}
    floors = ClassFloors.unknown(told.needs, len(told.gt.categories))
    given = ray.put(floors)
    seen = np.zeros(-(-len(told.gt.images) // 8), dtype=np.uint8)
    sizes, apart, room = [_size(path, told.folder) for path in paths], True, told.room
    under_way: dict[Any, tuple[int, Any, Any]] = {}
    waiting = iter(enumerate(paths))
    while True:
        for number, path in _some(waiting, _AHEAD * _cpus() - len(under_way)):
            found, portion, told_floors = _read_shard.remote(job, path, number, room, given)
            under_way[found] = number, portion, told_floors
        if not under_way:
            break
        (ready,), _ = ray.wait(list(under_way), num_returns=1)
        number, portion, told_floors = under_way.pop(ready)
        shard: ShardFacts = ray.get(ready)
        facts[number] = replace(shard, images=None)
        room = max(room - shard.rows, 0)
        if shard.images is not None:
            portions[number] = portion
            apart = apart and not (seen & shard.images).any()
            seen |= shard.images
        news = ray.get(told_floors)
        if floors is not None and news is not None:
            floors = floors.raised(news)
            given = ray.put(floors)
        if update is not None:
            update(sum(sizes[one] for one in facts), sum(sizes))
    return _ReadShards(
        [facts[number] for number in range(len(paths))],
        [portions[number] for number in sorted(portions)],
        apart,
    )


def _matched(job: Job, shards: _ReadShards, boxes_given: bool, update: Update | None) -> Any:
    """The part of all images."""
    told = ray.put(job)
    portions, cut = shards.portions, shards.rows > job.room
    groups = [[portion] for portion in portions]
    if not shards.apart:
        nbytes = sum(facts.nbytes for facts in shards.facts)
        blocks = max(-(-nbytes // _BLOCK), _cpus(), 2)
        split = _split_portion.options(num_returns=blocks)
        every = [split.remote(portion, blocks) for portion in portions]
        groups = [list(block) for block in zip(*every, strict=True)]
    shards.portions.clear()
    parts = [_match_portions.remote(told, boxes_given, cut, *group) for group in groups]
    del portions, groups
    while len(parts) > _FAN_IN:
        some = [parts[begin : begin + _FAN_IN] for begin in range(0, len(parts), _FAN_IN)]
        parts = [_merge_parts.remote(told, cut, *group) for group in some]
    _wait(parts, update)
    return tasks.merge_parts(job, cut, *ray.get(parts))


def _wait(references: list[Any], update: Update | None) -> None:
    left, total = list(references), len(references)
    while left:
        _, left = ray.wait(left, num_returns=1)
        if update is not None:
            update(total - len(left), total)


def _some(items: Iterator[Any], count: int) -> Iterator[Any]:
    for _ in range(count):
        try:
            yield next(items)
        except StopIteration:
            return


def _cpus() -> int:
    """The CPUs of the cluster as it is now."""
    return max(int(ray.cluster_resources().get("CPU", 1)), 1)


def _size(path: InputPath, folder: str) -> int:
    """Bytes to read; 0 where reading will say what is wrong."""
    if isinstance(path, RemotePath):
        return path.size
    try:
        return os.stat(os.path.join(folder, path)).st_size
    except OSError:
        return 0
