"""Resampling of images: the metrics of many bootstrap samples, from one match.

A sample draws as many images as the annotations have, with replacement. An image drawn twice counts
as two images. AP-Old's budget applies within an image and is unaffected; the class budget of
AP-Fixed and AP-Pool counts a sample's detections, so it is applied to each sample. Nothing is
matched again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.evaluation.average_precision import RECALLS
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.summary import NAMES
from lvdet.limits.budgets import Budget, PerClass
from lvdet.matching.match import to_be_found
from lvdet.tables.categories import FREQUENCIES, Categories
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows, image_rows
from lvdet.threads import thread_count

#: Sets that are worked on together.
LANES = _native.LANES


@dataclass(frozen=True, eq=False)
class Drawn:
    """The metrics of a detector on R bootstrap samples, NaN if there is nothing to find.

    old, fixed: [R, C] float64, AP of each class
    pool: [R, 4] float64, AP, APr, APc, APf of AP-Pool
    """

    old: NDArray[np.float64]
    fixed: NDArray[np.float64]
    pool: NDArray[np.float64]

    def metrics(self, categories: Categories) -> NDArray[np.float64]:
        """[R, 3, 4] AP, APr, APc and APf of AP-Old, AP-Fixed and AP-Pool."""
        blocks = range(0, len(self.pool), LANES)  # so that sums do not depend on what comes beside
        found = [
            np.concatenate([_means(values[at : at + LANES], categories) for at in blocks])
            for values in (self.old, self.fixed)
        ]
        return np.stack([*found, self.pool], axis=1)


class Resampler:
    """One detector, ready to be evaluated on any number of bootstrap samples.

    It holds the image of each detection by class and rank (4 bytes each), and some 30 bytes for
    each that is matched. A thread needs 144 bytes for each matched row of the largest class, and
    bootstrap samples 16 bytes per image.
    """

    def __init__(
        self,
        pair: Pair,
        *,
        old: Budget,
        fixed: PerClass,
    ) -> None:
        gt, ranking = pair.gt, pair.results.ranking
        self._budget = fixed.limit
        classes = len(gt.categories)
        self._matches = matches = pair.matches
        keep = pair.kept_rows([old], pair.every_class)
        image = image_rows(gt, ranking)[ranking.image]
        if len(image) and image.min() < 0:
            raise InputError(f"{ranking.source} has images that are not in {gt.source}")
        known = category_rows(gt, ranking)
        # Classes that the annotations lack form one extra class, which is not evaluated.
        group = np.where(known < 0, np.int32(classes), known)[ranking.category]
        ordering = _native.rank_groups(group, classes + 1, ranking.score, thread_count())
        rows, begins = ordering
        place = _native.find_places(ordering, matches.detection, thread_count())
        self._category = matches.category
        self._place = (place - begins[self._category]).astype(np.int32)
        self._image = image[matches.detection]
        self._old = np.ones(len(matches), np.uint8) if keep is None else keep.view(np.uint8)
        self._pooled = matches.together
        self._ranked = image[rows[: begins[classes]]], begins[: classes + 1].copy()
        self._truth = _objects(gt, pair.options.exact_lvis)
        groups = gt.categories.groups()
        self._group = np.full(classes, -1, dtype=np.int32)
        for number, members in enumerate(groups.values()):
            self._group[members] = number
        self._groups = len(groups)

    def values(self, weights: NDArray[np.uint8]) -> Drawn:
        """The metrics on bootstrap samples, given how often each sample contains each image:
        [blocks, images, LANES], from `draw`."""
        old, fixed, pool = _native.resample(
            self._matches.outcomes.columns,
            len(self._matches.thresholds),
            self._image,
            self._category,
            self._matches.category_offsets,
            self._place,
            self._old,
            self._pooled,
            self._ranked,
            self._truth,
            self._group,
            self._groups,
            self._budget,
            weights,
            RECALLS,
            thread_count(),
        )
        missing = np.full((len(pool), len(NAMES) - pool.shape[1]), np.nan)
        return Drawn(old, fixed, np.concatenate([pool, missing], axis=1))

    def objects(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """[C] the objects of each class to find, and the number of images that have them."""
        image, begins = self._truth
        lists = [image[begins[row] : begins[row + 1]] for row in range(len(begins) - 1)]
        return np.diff(begins), np.array([len(np.unique(one)) for one in lists], dtype=np.int64)

    def group_images(self, categories: Categories) -> NDArray[np.int64]:
        """[4] for each metric, the number of images with objects of any of its classes."""
        image, begins = self._truth
        category = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
        members = group_rows(categories).values()
        counts = [len(np.unique(image[np.isin(category, rows)])) for rows in members]
        return np.array(counts, dtype=np.int64)


def draw(images: int, first: int, count: int, *, seed: int) -> NDArray[np.uint8]:
    """[blocks, images, LANES] how often the sets first … first + count - 1 have each image.

    Each set has a random stream of its own, so that it does not matter which are drawn together.
    Places beyond `count` in the last block are left empty.
    """
    blocks = -(-count // LANES)
    weights = np.zeros((blocks, images, LANES), dtype=np.uint8)
    for number in range(count):
        rng = np.random.default_rng([seed, first + number])
        drawn = np.bincount(rng.integers(0, images, images), minlength=images)
        # With this many images none is drawn 256 times; that would take 10 ** 500 samples.
        weights[number // LANES, :, number % LANES] = drawn
    return weights


def as_it_is(images: int) -> NDArray[np.uint8]:
    """[1, images, LANES] the weights of the original set, in the first lane."""
    weights = np.zeros((1, images, LANES), dtype=np.uint8)
    weights[0, :, 0] = 1
    return weights


def group_rows(categories: Categories) -> dict[str, NDArray[np.int64]]:
    """For each metric, the rows of the classes it averages: AP, APr, APc and APf."""
    groups, none = categories.groups(), np.zeros(0, dtype=np.int64)
    members = [np.arange(len(categories)), *(groups.get(name, none) for name in FREQUENCIES)]
    return dict(zip(NAMES, members, strict=True))


def _means(values: NDArray[np.float64], categories: Categories) -> NDArray[np.float64]:
    """[R, 4] the mean over defined classes, overall and by frequency group."""
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    means = np.full((len(values), len(NAMES)), np.nan)
    for column, rows in enumerate(group_rows(categories).values()):
        count = known[:, rows].sum(axis=1)
        there = count > 0
        means[there, column] = filled[there][:, rows].sum(axis=1) / count[there]
    return means


def _objects(
    gt: GroundTruth, exact_lvis: bool
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """The image of each object to find, by class, and where each class begins."""
    rows = np.flatnonzero(to_be_found(gt, exact_lvis))
    rows = rows[np.argsort(gt.category[rows], kind="stable")]
    counts = np.bincount(gt.category[rows], minlength=len(gt.categories))
    return gt.image[rows], np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
