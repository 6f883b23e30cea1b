"""The input of calibration: scores, and whether each detection was correct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.calibration.maps import Floats
from lvdet.errors import InputError
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import FIXED_PER_CLASS
from lvdet.files.progress import Progress
from lvdet.limits.budgets import PerClass
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.categories import Categories
from lvdet.tables.problems import rows_of
from lvdet.threads import thread_count

#: The IoU at which a detection is right, in the paper.
IOU_THRESHOLD = 0.75
#: How far scores may leave [0, 1] by rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Samples:
    """The detections that count, by class and descending score; those that AP ignores are excluded.

    score:     [N] float64 in [0, 1]
    right:     [N] bool
    detection: [N] int32, rows of the matched detections: the results, or the best of each class
    offsets:   [C + 1] int64, where each class begins
    categories: the C classes
    source:    their name in messages
    """

    score: Floats
    right: NDArray[np.bool_]
    detection: NDArray[np.int32]
    offsets: NDArray[np.int64]
    categories: Categories
    source: str = "detections"

    def __len__(self) -> int:
        return len(self.score)

    def rows(self, group: int) -> slice:
        """The rows of a class."""
        return slice(int(self.offsets[group]), int(self.offsets[group + 1]))

    @property
    def category(self) -> NDArray[np.int32]:
        """[N] class of each row."""
        counts = np.diff(self.offsets)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    def group_rows(self) -> dict[str, NDArray[np.bool_]]:
        """[N] whether each row belongs to a frequency group, per group; empty for files without
        frequencies."""
        counts, found = self.counts(), {}
        for name, classes in self.categories.groups().items():
            member = np.zeros(len(counts), dtype=bool)
            member[classes] = True
            found[name] = np.repeat(member, counts)
        return found

    def counts(self) -> NDArray[np.int64]:
        """[C] detections of each class."""
        return np.diff(self.offsets)

    def right_counts(self) -> NDArray[np.int64]:
        """[C] correct detections of each class."""
        return np.diff(np.searchsorted(np.flatnonzero(self.right), self.offsets))

    def where(self, keep: NDArray[np.bool_]) -> Samples:
        """The rows selected by a mask."""
        rows = np.flatnonzero(keep)
        return replace(
            self,
            score=self.score.take(rows),
            right=self.right.take(rows),
            detection=self.detection.take(rows),
            offsets=np.searchsorted(rows, self.offsets),
        )

    def grouped(self, group: NDArray[np.int32], groups: int) -> Samples:
        """The rows by groups of classes ([C] the group of each) and descending score."""
        order, offsets = _native.rank_groups(
            group[self.category], groups, self.score, thread_count()
        )
        return replace(
            self,
            score=self.score[order],
            right=self.right[order],
            detection=self.detection[order],
            offsets=offsets,
        )


@dataclass(frozen=True)
class Labelling:
    """Which detections are labelled, and when they are correct."""

    iou: str | None = None
    iou_threshold: float = IOU_THRESHOLD
    dets_per_class: int = FIXED_PER_CLASS

    def __post_init__(self) -> None:
        require_iou_threshold(self.iou_threshold)
        PerClass(self.dets_per_class)


def load_samples(
    gt: Annotations,
    detections: ResultSource,
    labelling: Labelling,
    progress: Progress | None = None,
) -> tuple[Pair, Samples]:
    """Loads the pair and its samples, labelled by the match that AP uses, from the best detections
    of each class over all images."""
    thresholds = [labelling.iou_threshold]
    pair = load_best(gt, detections, labelling, progress, thresholds=thresholds)
    return pair, samples_of(pair, labelling.iou_threshold)


def load_best(
    gt: Annotations,
    detections: ResultSource,
    labelling: Labelling,
    progress: Progress | None = None,
    *,
    thresholds: Sequence[float] | None = None,
) -> Pair:
    """Loads the annotations and only the best detections of each class."""
    budget = PerClass(labelling.dets_per_class)
    pair = load_pair(
        gt,
        detections,
        lambda truth: [Need(budget, np.arange(len(truth.categories)))],
        MatchOptions(labelling.iou, thresholds),
        progress=progress,
    )
    keep = pair.kept([budget])
    return pair if keep is None else pair.where(keep)


def samples_of(pair: Pair, iou_threshold: float = IOU_THRESHOLD) -> Samples:
    """The samples of a pair."""
    matches, place = pair.matched_at(iou_threshold)
    matched, ignored = matches.flags(place)
    ranking = pair.results.ranking
    score = ranking.score[matches.detection]
    require_chances(score, lambda _: ranking.source)
    every = Samples(
        np.clip(score, 0.0, 1.0),
        matched,
        matches.detection,
        matches.category_offsets,
        pair.gt.categories,
        pair.results.source,
    )
    return every.where(~ignored)


def require_chances(score: Floats, named: Callable[[int], str]) -> None:
    """Raises for scores outside 0 to 1, beyond rounding."""
    outside = np.flatnonzero(~((score >= -_ROUNDING) & (score <= 1 + _ROUNDING)))
    if len(outside):
        row = int(outside[0])
        raise InputError(
            f"{named(row)}: score is {score[row]:g}, expected 0 to 1 for calibration: apply a "
            "sigmoid to logits first"
        )


def require_iou_threshold(value: object) -> None:
    """Raises for an invalid IoU threshold."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise InputError(f"IoU threshold is {value!r}, expected a number above 0 and at most 1")


def require_same_classes(learned: Samples, wanted: Categories) -> None:
    """Raises for a training set whose class ids or names differ."""
    known = learned.categories
    for row, place in enumerate(rows_of(known.ids, wanted.ids).tolist()):
        if place < 0:
            raise InputError(
                f"{learned.source}: its annotations lack class id {wanted.ids[row]} "
                f"({wanted.names[row]!r}), which is being evaluated"
            )
        if known.names[place] != wanted.names[row]:
            raise InputError(
                f"{learned.source}: its annotations call class id {wanted.ids[row]} "
                f"{known.names[place]!r}, but it is evaluated as {wanted.names[row]!r}"
            )


def require_right(samples: Samples, iou_threshold: float) -> None:
    """Raises for samples of which none is correct."""
    if not samples.right.any():
        raise InputError(
            f"{samples.source}: none of its {len(samples):,} counted detections is correct at "
            f"IoU {iou_threshold:g}, so there is nothing to fit"
        )
