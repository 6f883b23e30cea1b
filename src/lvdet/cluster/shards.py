"""A results file in shards, read and matched by the tasks of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.cluster import tasks
from lvdet.cluster.class_floors import ClassFloors
from lvdet.cluster.engine import Reference, cpus, fetch, put, start, wait
from lvdet.cluster.shard_tables import shard_tables
from lvdet.cluster.table_tasks import Conversion
from lvdet.cluster.tasks import Job, ShardFacts
from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import require_known_class
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.pair_source import PairSource
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.collect import ROOM, ROOM_WITH_BOXES, MaskedFiles
from lvdet.files.detection_files import NamedFiles, may_have_masks, named_files
from lvdet.files.fingerprint import fingerprints
from lvdet.files.known_images import KnownImages
from lvdet.files.progress import Progress, Update, track
from lvdet.files.remote_path import InputPath, RemotePath
from lvdet.files.table_source import TableSource
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.partials.contribution import Form, pair_of
from lvdet.partials.part_columns import PartColumns, joined
from lvdet.tables.description import counted
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth

#: Tasks under way for each CPU while shards are read.
_AHEAD = 2
#: Bytes of portions that one task matches, about; parts that one task merges.
_BLOCK, _FAN_IN = 1 << 27, 32
#: Images are matched in blocks if more than the so-manieth part of them is in several shards.
_MANY = 16


@dataclass(frozen=True, eq=False)
class Shards(PairSource, TableSource):
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
            shards = _read_all(job, self.paths, update)
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

    def tables(
        self,
        *,
        masks: bool,
        dets_per_class: int | None,
        dets_per_image: int | None,
        images: KnownImages,
        change: Callable[[Detections], Detections],
        progress: Progress | None,
    ) -> Iterator[tuple[Detections, int]]:
        limits = dets_per_class, dets_per_image
        job = Conversion(masks, *limits, images, change, self.folder)
        with track(progress, "converting", "shards") as update:
            yield from shard_tables(job, self.paths, update)

    def _annotations(
        self, gt: InputPath, options: MatchOptions, progress: Progress | None
    ) -> GroundTruth:
        masks = options.iou != "bbox"
        if options.iou is None:
            first = self.paths[0]
            masks = may_have_masks(NamedFiles([first], self.name))
            if isinstance(first, RemotePath):
                first.end()  # a task will read it
        return read_ground_truth(gt, masks=masks, progress=progress)


def room_of(gt: GroundTruth) -> int:
    """The rows that are all kept, needed or not, as where one process reads them."""
    return ROOM_WITH_BOXES if gt.negative is None else ROOM


@dataclass(frozen=True, eq=False)
class _ReadShards:
    """facts: of each shard; portions: those that were read, by the place of the shard
    floors: what all of them tell
    """

    facts: Sequence[ShardFacts]
    portions: dict[int, Reference]
    floors: Reference

    @property
    def rows(self) -> int:
        return sum(facts.rows for facts in self.facts)


def _read_all(job: Job, paths: Sequence[InputPath], update: Update | None) -> _ReadShards:
    """Reads all shards, a bounded number at a time; those that are finished help the next ones to
    drop rows."""
    facts: dict[int, ShardFacts] = {}
    portions: dict[int, Reference] = {}
    floors = ClassFloors.unknown(job.needs, len(job.gt.categories))
    known, given = put(job), put(floors)
    sizes, room = sizes_of(paths, job.folder), job.room
    under_way: dict[Reference, tuple[int, Reference, Reference]] = {}
    waiting = iter(enumerate(paths))
    while True:
        for number, path in islice(waiting, max(_AHEAD * cpus() - len(under_way), 0)):
            shard, portion, best = start(
                tasks.read_shard, known, path, number, room, given, returns=3
            )
            under_way[shard] = number, portion, best
        if not under_way:
            break
        ready, _ = wait(list(under_way))
        number, portion, best = under_way.pop(ready)
        found = shard_facts(ready, number, under_way)
        facts[number] = found
        room = max(room - found.rows, 0)
        if found.images is not None:
            portions[number] = portion
        news = fetch(best)
        if floors is not None and news is not None:
            floors = floors.raised(news)
            given = put(floors)
        if update is not None:
            update(sum(sizes[one] for one in facts), sum(sizes))
    return _ReadShards(
        [facts[number] for number in range(len(paths))],
        {number: portions[number] for number in sorted(portions)},
        given,
    )


def shard_facts(
    ready: Reference, number: int, under_way: Mapping[Reference, tuple[int, Reference, Reference]]
) -> ShardFacts:
    """What a finished task returned. A failure ends the command, with the error of the first bad
    shard, whichever was read first."""
    try:
        found: ShardFacts = fetch(ready)
    except Exception:
        for other, (earlier, _, _) in under_way.items():
            if earlier < number:
                fetch(other)
        raise  # the few tasks under way end by themselves: cancelled late, they can abort Ray
    return found


def _matched(
    job: Job, shards: _ReadShards, boxes_given: bool, update: Update | None
) -> PartColumns:
    """The part of all images."""
    known = put(job)
    cut = shards.rows > job.room
    floors = shards.floors if cut else None
    groups = _groups(job, shards)
    parts = [
        start(tasks.match_portions, known, boxes_given, floors, left, *portions)
        for left, portions in groups
    ]
    shards.portions.clear()  # their memory is free as soon as they are matched
    groups.clear()
    while len(parts) > _FAN_IN:
        some = [parts[begin : begin + _FAN_IN] for begin in range(0, len(parts), _FAN_IN)]
        parts = [start(tasks.merge_parts, known, cut, *group) for group in some]
    left = list(parts)
    while left:
        _, left = wait(left)
        if update is not None:
            update(len(parts) - len(left), len(parts))
    return joined(fetch(parts)).sampled()


def _groups(job: Job, shards: _ReadShards) -> list[tuple[NDArray[np.int64], list[Reference]]]:
    """Portions to match together, so that every image is in one group; and the images of the first
    of them that are left to other groups.

    An image in several shards goes to the first of them. If there are many such images, blocks of
    images are matched together.
    """
    images = len(job.gt.images)
    owner = np.full(images, -1, dtype=np.int32)
    foreign: dict[int, NDArray[np.int64]] = {}
    for number in shards.portions:
        bits = shards.facts[number].images
        assert bits is not None
        here = np.flatnonzero(np.unpackbits(bits, count=images))
        owned = owner[here] >= 0
        foreign[number] = here[owned]
        owner[here[~owned]] = number
    if sum(map(len, foreign.values())) * _MANY <= images:
        groups = {
            number: (foreign[number], [portion]) for number, portion in shards.portions.items()
        }
        for number, portion in shards.portions.items():
            there = foreign[number]
            if not len(there):
                continue
            owners, block = np.unique(owner[there], return_inverse=True)
            count = len(owners)
            split = start(tasks.split_portion, portion, there, block, count, False, returns=count)
            for place, piece in zip(owners, split if count > 1 else [split], strict=True):
                groups[int(place)][1].append(piece)
        return list(groups.values())
    nbytes = sum(facts.nbytes for facts in shards.facts)
    blocks = max(-(-nbytes // _BLOCK), cpus(), 2)
    every = np.arange(images)
    known, block = put(every), put(every * blocks // max(images, 1))
    split = [
        start(tasks.split_portion, portion, known, block, blocks, True, returns=blocks)
        for portion in shards.portions.values()
    ]
    return [(every[:0], list(some)) for some in zip(*split, strict=True)]


def sizes_of(paths: Sequence[InputPath], folder: str) -> list[int]:
    """Bytes of each file; 0 where reading will say what is wrong."""
    return [_size(path, folder) for path in paths]


def _size(path: InputPath, folder: str) -> int:
    if isinstance(path, RemotePath):
        return path.size
    try:
        return os.stat(os.path.join(folder, path)).st_size
    except OSError:
        return 0
