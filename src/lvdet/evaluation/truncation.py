"""Detects whether a results file was truncated, and which detections budgets then miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lvdet.limits.budgets import Budget, PerClass, PerImage, PerImageClass
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows
from lvdet.tables.results import Results, ScoreFacts

#: Limits that tools are known to truncate at. If an image or class has exactly one of these numbers
#: and none has more, that is hardly an accident.
USUAL_PER_IMAGE = frozenset({100, 200, 300, 500, 1_000, 2_000, 3_000, 5_000, 10_000})
USUAL_PER_CLASS = frozenset({1_000, 3_000, 5_000, 10_000, 20_000, 30_000, 50_000, 100_000})
#: At any other number, a file counts as truncated if this many images (classes) have exactly the
#: largest number, …
ENOUGH = 5
#: … and outnumber those that have one less, or up to this share less.
MARGIN = 0.1


class Cut(NamedTuple):
    """Evidence of truncation: the most detections per image (or per class), and how many images (or
    classes) have exactly that many."""

    limit: int
    at_limit: int

    @property
    def certain(self) -> bool:
        """Whether there are enough of them to be certain."""
        return self.at_limit >= ENOUGH


def image_cut(counts: NDArray[np.int64]) -> Cut | None:
    """Truncation per image; None if there is no evidence. `counts` are the detections of all
    images."""
    return _cut(counts, USUAL_PER_IMAGE)


def class_cut(counts: NDArray[np.int64]) -> Cut | None:
    """Truncation per class; None if there is no evidence. `counts` are the detections of all
    classes."""
    return _cut(counts, USUAL_PER_CLASS)


def _cut(counts: NDArray[np.int64], usual: frozenset[int]) -> Cut | None:
    most = int(counts.max(initial=0))
    at_most = int((counts == most).sum())
    below = min((1 - MARGIN) * most, most - 1)
    close = int(((counts < most) & (counts >= below)).sum())
    if most in usual or (most > 1 and at_most >= ENOUGH and at_most > close):
        return Cut(most, at_most)
    return None


def class_counts(gt: GroundTruth, results: Results) -> NDArray[np.int64]:
    """[C] the number of detections in the file of each class of the annotations."""
    rows = category_rows(gt, results.ranking)
    counts = np.zeros(len(gt.categories), dtype=np.int64)
    np.add.at(counts, rows[rows >= 0], results.per_class[rows >= 0])
    return counts


@dataclass(frozen=True, eq=False)
class Cuts:
    """How a file was truncated.

    by_image, by_class: None if there is no evidence of truncation per image, or per class
    images, classes: how many images and classes have detections
    counts: [C] from `class_counts`
    certain: the highest limit per image that still keeps the same detections, although the file is
             truncated per class
    """

    by_image: Cut | None
    by_class: Cut | None
    images: int
    classes: int
    counts: NDArray[np.int64]
    certain: int

    @staticmethod
    def of(gt: GroundTruth, results: Results) -> Cuts:
        """Derives the truncation from the numbers of detections."""
        by_class = class_cut(results.per_class)
        return Cuts(
            image_cut(results.per_image),
            by_class,
            int((results.per_image > 0).sum()),
            int((results.per_class > 0).sum()),
            class_counts(gt, results),
            0 if by_class is None else _certain(gt, results, by_class.limit),
        )

    def incomplete(self, budgets: Sequence[Budget], classes: NDArray[np.int64]) -> bool:
        """Whether the file lacks detections of these classes (rows of the annotations' categories)
        that the budgets would keep."""
        return self.missed_by_image(budgets, classes) or self.missed_by_class(budgets, classes)

    def missed_by_image(self, budgets: Sequence[Budget], classes: NDArray[np.int64]) -> bool:
        """Whether that is because of truncation per image: it is, unless the budgets begin with a
        limit per image that is as low or lower, over all classes. Of COCO's limit per image and
        class only the number counts: files for COCO are usually truncated at that number per
        image."""
        if self.by_image is None:
            return False
        first = budgets[0] if budgets else None
        if isinstance(first, PerImageClass):
            return first.limit > self.by_image.limit
        every_class = len(classes) == len(self.counts)
        return not (
            isinstance(first, PerImage) and first.limit <= self.by_image.limit and every_class
        )

    def missed_by_class(self, budgets: Sequence[Budget], classes: NDArray[np.int64]) -> bool:
        """Whether that is because of truncation per class: it is, unless the budgets begin with a
        limit per class that is as low or lower. If a limit per image comes first, the results are
        `reranked` instead."""
        first = budgets[0] if budgets else None
        if self.by_class is None or isinstance(first, PerImage) or not self._touches(classes):
            return False
        return not (isinstance(first, PerClass) and first.limit <= self.by_class.limit)

    def reranked(self, budgets: Sequence[Budget], classes: NDArray[np.int64]) -> bool:
        """Whether truncation per class turns the budgets into a re-ranking (the paper's "Ranking
        2"): they begin with a limit per image, where the lost detections might have taken
        places."""
        first = budgets[0] if budgets else None
        return isinstance(first, PerImage) and first.limit > self.certain and self._touches(classes)

    def _touches(self, classes: NDArray[np.int64]) -> bool:
        """Whether one of the classes is so large that truncation per class may have shortened
        it."""
        return self.by_class is not None and bool(
            (self.counts[classes] >= self.by_class.limit).any()
        )


def _certain(gt: GroundTruth, results: Results, cut: int) -> int:
    """How many detections of each image score above everything that truncation per class may have
    removed, which scored at most as much as the lowest left in a class of that size."""
    ranking = results.ranking
    large = results.per_class >= cut
    if (results.per_image > 0).sum() < len(gt.images):
        return 0
    scores = results.scores
    if scores is None:
        held = np.bincount(ranking.category, minlength=len(large))
        if (held < results.per_class)[large].any():
            return 0
        scores = ScoreFacts.of(ranking.category, ranking.score, len(large))
    above = ranking.image[ranking.score > scores.lowest[large].max()]
    return int(np.bincount(above, minlength=len(results.per_image)).min())
