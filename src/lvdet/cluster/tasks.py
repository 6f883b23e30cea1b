"""The work of one task: reads a shard, matches the images of portions, or merges parts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.cluster.class_floors import ClassFloors
from lvdet.cluster.portions import Portion, pieces, union
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
from lvdet.tables.results import Ranking, ScoreFacts
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
    if floors is not None:
        caps = [cap if cap.by_image else replace(cap, floors=floors.floor) for cap in caps]
    files, masks = NamedFiles([path], str(path)), options.iou != "bbox"
    results = read_results(files, gt, caps, masks=masks, room=room)
    ranking, detections = results.ranking, results.detections
    scores = ScoreFacts.of(ranking.category, ranking.score, len(ranking.category_ids))
    portion = Portion(replace(results, scores=scores), number)
    facts = ShardFacts(
        results.total,
        masks and detections.masks is not None,
        detections.boxes_given and bool(results.total),
        portion.nbytes,
        np.packbits(results.per_image > 0),
        fingerprints([path]),
    )
    large = results.total * job.shards > job.room
    return facts, portion, floors.of(ranking) if floors and large else None


def split_portion(
    portion: Portion,
    images: NDArray[np.integer[Any]],
    block: NDArray[np.integer[Any]],
    count: int,
    facts: bool,
) -> list[Portion] | Portion:
    """A portion by blocks of images: as many as that, or the only one.

    block: one number for each of `images`; other images are in no block
    """
    of_image = np.full(len(portion.results.per_image), -1, dtype=np.int32)
    of_image[images] = block
    found = pieces(portion, of_image, count, facts)
    return found if count > 1 else found[0]


def match_portions(
    job: Job,
    boxes_given: bool,
    floors: ClassFloors | None,
    left: NDArray[np.integer[Any]],
    *portions: Portion,
) -> PartColumns:
    """The part of the images of portions, which are in no others. Without rows that no budget can
    keep, if the floors of all shards are given.

    left: images of the first portion that are left to the parts of other shards
    """
    set_threads(1)
    nothing = left[:0]
    kept = [
        _kept(job, portion, floors, nothing if place else left)
        for place, portion in enumerate(portions)
    ]
    results, position = union(kept, job.gt)
    detections = replace(results.detections, boxes_given=boxes_given)
    part = part_of(
        *(job.gt, replace(results, detections=detections)),
        *(job.options, np.arange(len(job.gt.categories))),
        position=position,
        image_ids=np.sort(results.ranking.image_ids[results.per_image > 0]),
        own_truth=False,
    )
    return part.sampled()


def _kept(
    job: Job, portion: Portion, floors: ClassFloors | None, left: NDArray[np.integer[Any]]
) -> Portion:
    """The rows that budgets can keep, if floors are given, of images that are not left out."""
    keep = None if floors is None else _needed(job, portion, floors)
    if len(left):
        own = np.ones(len(portion.results.per_image), dtype=bool)
        own[left] = False
        of_own = own[portion.results.ranking.image]
        keep = of_own if keep is None else keep & of_own
        portion = portion.with_facts_of(own)
    return portion if keep is None else portion.where(keep)


def _needed(job: Job, portion: Portion, floors: ClassFloors) -> NDArray[np.bool_] | None:
    results = portion.results
    ranking = results.ranking
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


def merge_parts(job: Job, cut: bool, *parts: PartColumns) -> PartColumns:
    """Parts of different images together; `cut` to what is needed of them."""
    set_threads(1)
    part = joined(parts)
    return part.needed(job.requests(part.ranking(""))) if cut else part.sampled()


@contextlib.contextmanager
def in_folder(folder: str) -> Iterator[None]:
    """In the folder where the command was called, so that relative paths mean the same; a node that
    has no such folder may still have the files of absolute paths, or reach buckets."""
    with contextlib.chdir(folder) if os.path.isdir(folder) else contextlib.nullcontext():
        yield
