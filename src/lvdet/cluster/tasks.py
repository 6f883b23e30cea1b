"""The work of one task: reads a shard, matches the images of portions, or merges parts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.cluster.class_floors import ClassFloors
from lvdet.cluster.portions import Portion, pieces, portion_of, union
from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import counted_classes
from lvdet.files.detection_files import NamedFiles, read_results
from lvdet.files.fingerprint import fingerprints
from lvdet.files.remote_path import InputPath
from lvdet.limits.needs import Need, caps_of
from lvdet.matching.match_options import MatchOptions
from lvdet.partials.contribution import part_of
from lvdet.partials.needed_rows import Request, needed_rows, requests_of
from lvdet.partials.part_columns import DRAWN_IMAGES, PartColumns, joined
from lvdet.partials.truth_facts import facts_of
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Ranking, Results, ScoreFacts
from lvdet.threads import set_threads


@dataclass(frozen=True, eq=False)
class Job:
    """What all tasks of a file know.

    shards: how many there are; room: up to so many rows are all kept, needed or not
    folder: where relative paths begin
    skip_bad: whether shards that cannot be read are left out
    """

    gt: GroundTruth
    needs: Sequence[Need]
    options: MatchOptions
    shards: int
    room: int
    folder: str
    skip_bad: bool = False

    def requests(self, ranking: Ranking) -> list[Request]:
        """The needs, for the classes of a ranking."""
        found: list[Request] = []
        for need in self.needs:
            exact = self.options.exact_lvis
            members = counted_classes(self.gt, ranking, need.classes, exact)
            found += requests_of([need.budget], members)
        return found


@dataclass(frozen=True, eq=False)
class ShardFacts:
    """What the coordinating process learns of a shard.

    images: [I] bits, which images have rows; problem: why it was left out, if it was
    """

    rows: int = 0
    masks: bool = False
    boxes_given: bool = False
    nbytes: int = 0
    images: NDArray[np.uint8] | None = None
    files: Sequence[dict[str, Any]] = ()
    problem: str | None = None


def read_shard(
    job: Job, path: InputPath, number: int, room: int, floors: ClassFloors | None
) -> tuple[ShardFacts, Portion | None, ClassFloors | None]:
    """The rows of a shard, only those that the needs can use if there are more than `room`; and
    what they tell of the best of each class."""
    set_threads(1)
    try:
        with in_folder(job.folder):
            return _read(job, path, number, room, floors)
    except InputError as error:
        if not job.skip_bad:
            raise
        return ShardFacts(problem=str(error)), None, None


def _read(
    job: Job, path: InputPath, number: int, room: int, floors: ClassFloors | None
) -> tuple[ShardFacts, Portion, ClassFloors | None]:
    gt, options = job.gt, job.options
    caps = caps_of(job.needs, gt, unknown=options.exact_lvis)
    masks = options.iou != "bbox"
    results = read_results(NamedFiles([path], str(path)), gt, caps, masks=masks)
    ranking = results.ranking
    scores = ScoreFacts.of(ranking.category, ranking.score, len(ranking.category_ids))
    results = replace(results, scores=scores)
    keep = _needed(job, results, floors) if results.total > room else None
    portion = portion_of(results, number, keep)
    detections = results.detections
    facts = ShardFacts(
        results.total,
        masks and detections.masks is not None,
        detections.boxes_given and bool(results.total),
        portion.nbytes,
        np.packbits(results.per_image > 0),
        fingerprints([path]),
    )
    large = results.total * job.shards > job.room
    return facts, portion, floors.of(portion.results.ranking) if floors and large else None


def _needed(job: Job, results: Results, floors: ClassFloors | None) -> NDArray[np.bool_] | None:
    ranking, floor = results.ranking, None
    if floors is not None:
        floor = np.full(len(ranking.category_ids), -np.inf)
        floor[: len(floors.floor)] = floors.floor
    whole = _sampled(job.gt, results.per_image)
    return needed_rows(ranking, job.requests(ranking), whole, floor=floor)


def _sampled(gt: GroundTruth, per_image: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[I] the images of a shard of which a part may keep all rows, to see whether results are
    plausible."""
    place = facts_of(gt).drawn_place
    there = np.flatnonzero((place >= 0) & (per_image > 0))
    whole = np.zeros(len(place), dtype=bool)
    whole[there[np.argsort(place[there])[:DRAWN_IMAGES]]] = True
    return whole


def split_portion(portion: Portion, count: int) -> list[Portion]:
    """A portion by blocks of images."""
    return pieces(portion, count)


def match_portions(job: Job, boxes_given: bool, cut: bool, *portions: Portion) -> PartColumns:
    """The part of the images of portions, which are in no others; `cut` to what is needed."""
    set_threads(1)
    portion = union(portions, job.gt)
    results, options = portion.results, job.options
    detections = replace(results.detections, boxes_given=boxes_given)
    part = part_of(
        *(job.gt, replace(results, detections=detections)),
        *(options, np.arange(len(job.gt.categories))),
        position=portion.position,
        image_ids=np.sort(results.ranking.image_ids[results.per_image > 0]),
        own_truth=False,
    )
    return _cut(job, part) if cut else part.sampled()


def merge_parts(job: Job, cut: bool, *parts: PartColumns) -> PartColumns:
    """Parts of different images together."""
    set_threads(1)
    return merged(job, cut, parts)


def merged(job: Job, cut: bool, parts: Sequence[PartColumns]) -> PartColumns:
    """The same, with as many threads as the process has."""
    part = joined(parts)
    return _cut(job, part) if cut else part.sampled()


def _cut(job: Job, part: PartColumns) -> PartColumns:
    return part.needed(job.requests(part.ranking("")))


@contextlib.contextmanager
def in_folder(folder: str) -> Iterator[None]:
    """In the folder where the command was called, so that relative paths mean the same."""
    with contextlib.chdir(folder):
        yield
