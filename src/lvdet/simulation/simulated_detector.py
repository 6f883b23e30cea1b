"""The candidates of the simulated detector: correct, incorrect and uncounted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.maps import expit
from lvdet.errors import InputError
from lvdet.simulation.simulated_truth import (
    Floats,
    Ints,
    Lattice,
    box_sizes,
    highest_overlap,
    scene_scales,
)
from lvdet.tables.ground_truth import GroundTruth, ImageLists

#: Likely-looking candidates in unverified cells, for each class and image.
_CLUTTER = 0.7
#: Scores of the candidates that only fill an image up to its budget are below this.
_FILLER = 1e-3
#: A positive cell draws this many times the incorrect detections of a negative one.
_POSITIVE = 4
#: Incorrect detections keep below this IoU, with room under 0.5 for what masks do to boxes.
_MISS = 0.45
#: Prepared draws of classes and boxes, picked by index: far faster than drawing each time.
_TABLE = 1 << 16


@dataclass(frozen=True)
class Candidates:
    """[N] image and class rows and scores, [N, 4] boxes in steps."""

    image: NDArray[np.int32]
    category: NDArray[np.int32]
    score: Floats
    box: Floats

    def take(self, rows: Ints) -> Candidates:
        """The given rows."""
        return Candidates(self.image[rows], self.category[rows], self.score[rows], self.box[rows])


def joined(parts: list[Candidates]) -> Candidates:
    """One set of all parts' rows, in order."""
    return Candidates(
        np.concatenate([part.image for part in parts]),
        np.concatenate([part.category for part in parts]),
        np.concatenate([part.score for part in parts]),
        np.concatenate([part.box for part in parts]),
    )


class Detector:
    """What the simulated detector knows about the data, and how well it knows each class.

    memory: [C] how far the scores of correct detections are pushed up, in logits, because the
        detector has seen these images before
    verified: expected number of detections in the verified cells of an image, None for what the
        classes' skill brings
    """

    def __init__(
        self,
        rng: np.random.Generator,
        truth: GroundTruth,
        rarity: Floats,
        lattice: Lattice,
        localisation: float,
        memory: Floats | None = None,
        verified: float | None = None,
    ) -> None:
        classes = len(rarity)
        self.truth, self.lattice, self.localisation = truth, lattice, localisation
        self.memory = np.zeros(classes) if memory is None else memory
        self.limit = lattice.limits(truth.images)
        self.box = np.rint(truth.box * lattice.steps)
        self.cell = truth.image.astype(np.int64) * classes + truth.category
        self.a, self.b, self.share = _skill(rng, rarity)
        self.weight, counted = _cells(truth, self.cell)
        self.blocked = self.weight > (0 if truth.federated else 1)
        expected = self.share * np.bincount(truth.category[~truth.crowd], minlength=classes)
        self.rate = expected * self.b / self.a / np.maximum(counted, 1)
        if verified is not None:
            self._fill_verified(verified * len(truth.images), float(expected.sum()))
        often = np.cumsum((1.05 - rarity) ** 2)
        levels = (np.arange(_TABLE) + 0.5) / _TABLE * often[-1]
        self.by_class = np.searchsorted(often, levels).astype(np.int32)
        self.sizes = box_sizes(rng, scene_scales(rng, _TABLE))
        self.fractions = rng.random((_TABLE, 2))

    def _fill_verified(self, total: float, correct: float) -> None:
        """Produces `total` detections in verified cells, `correct` of them correct: each class gets
        as many more incorrect ones as its b grows, so scores remain the probability of being
        correct."""
        if total <= correct:
            raise InputError(
                f"verified_share is too low: {correct:,.0f} correct detections are expected, and "
                f"{total:,.0f} in all verified cells"
            )
        scale = (total - correct) / (self.rate @ self.weight.sum(axis=0, dtype=np.float64))
        self.b, self.rate = self.b * scale, self.rate * scale

    def look(
        self, rng: np.random.Generator, rows: Ints, candidates: int | None, cut: int | None
    ) -> Candidates:
        """All candidates of the images `rows`, a range, before any limit."""
        first, classes = rows[0], len(self.a)
        found = joined([self._hits(rng, rows), self._misses(rng, rows)])
        if self.truth.federated:
            number = np.full(len(rows), round(_CLUTTER * classes))
            if candidates is not None:
                already = np.bincount(found.image - first, minlength=len(rows))
                number = np.clip(candidates - already, 0, number)
            found = joined([found, self._clutter(rng, np.repeat(rows, number))])
        already = np.bincount(found.image - first, minlength=len(rows))
        missing = np.maximum(max(candidates or 0, cut or 0) - already, 0)
        return joined([found, self._fillers(rng, np.repeat(rows, missing))])

    def _hits(self, rng: np.random.Generator, rows: Ints) -> Candidates:
        """Correct detections: at most one per box, with IoU of at least 0.5."""
        truth = self.truth
        near = np.arange(*np.searchsorted(truth.image, [rows[0], rows[-1] + 1]))
        seen = rng.random(len(near)) < self.share[truth.category[near]]
        near = near[seen & ~truth.crowd[near]]
        image, category = truth.image[near], truth.category[near]
        score = pushed(rng.beta(self.a[category] + 1, self.b[category]), -self.memory[category])
        iou = np.ones(len(near))
        if self.localisation < 1:
            tight, loose = 4 * self.localisation + 0.01, 4 * (1 - self.localisation)
            iou = 0.52 + 0.48 * rng.beta(tight, loose, len(near))
        return Candidates(
            image, category, score, _jittered(rng, self.box[near], iou, self.limit[image])
        )

    def _misses(self, rng: np.random.Generator, rows: Ints) -> Candidates:
        """Incorrect detections in verified cells, away from the boxes of their class."""
        number = rng.poisson(self.rate * self.weight[rows])
        image, category = (index.astype(np.int32) for index in np.nonzero(number))
        number = number[number > 0]
        image, category = np.repeat(image + np.int32(rows[0]), number), np.repeat(category, number)
        score = rng.beta(self.a[category], self.b[category] + 1)
        box = self._any_boxes(rng, image)
        cell = image.astype(np.int64) * len(self.a) + category
        start = np.searchsorted(self.cell, cell)
        stop = np.searchsorted(self.cell, cell, side="right")
        close = np.flatnonzero(stop > start)
        for _ in range(20):
            best = highest_overlap(box[close], start[close], stop[close], self.box)
            close = close[best >= _MISS]
            box[close] = self._any_boxes(rng, image[close])
        return Candidates(image, category, score, box)

    def _clutter(self, rng: np.random.Generator, image: Ints) -> Candidates:
        """Candidates in unverified cells, which AP ignores but budgets count."""
        category = self._unblocked(rng, image)
        rows = np.flatnonzero(~self.blocked[image, category])
        image, category = image[rows], category[rows]
        score = rng.beta(self.a[category], self.b[category])
        return Candidates(image.astype(np.int32), category, score, self._any_boxes(rng, image))

    def _fillers(self, rng: np.random.Generator, image: Ints) -> Candidates:
        """The near-zero scores at the end of every detector's list, away from objects."""
        category = self._unblocked(rng, image)
        score = _FILLER * rng.random(len(image))
        return Candidates(image.astype(np.int32), category, score, self._any_boxes(rng, image))

    def _unblocked(self, rng: np.random.Generator, image: Ints) -> NDArray[np.int32]:
        """[N] classes unverified in these images (COCO: without objects), if there are any."""
        category: NDArray[np.int32] = self.by_class[rng.integers(0, _TABLE, len(image))]
        pending = np.arange(len(image))
        for _ in range(20):
            pending = pending[self.blocked[image[pending], category[pending]]]
            category[pending] = self.by_class[rng.integers(0, _TABLE, len(pending))]
        return category

    def _any_boxes(self, rng: np.random.Generator, image: NDArray[np.integer]) -> Floats:
        """[N, 4] boxes in steps, sized like objects, anywhere in the image."""
        pick = rng.integers(0, _TABLE, len(image))
        return self.lattice.place(self.sizes[pick], self.fractions[pick], self.limit[image])


def _skill(rng: np.random.Generator, rarity: Floats) -> tuple[Floats, Floats, Floats]:
    """[C] Beta parameters a and b of each class's scores, and the share of its boxes found.

    Rare classes score lower, and closer together. The numbers are chosen so that at LVIS's
    size AP by frequency, and what it loses at 300 per image, come near the paper's table 2.
    """
    talent = rng.normal(0.0, 0.35, len(rarity))
    mean = expit(-1.2 - 2.0 * rarity + talent)
    spread = 1.2 + 8.0 * rarity**2
    return mean * spread, (1 - mean) * spread, expit(1.5 - rarity + talent)


def _cells(truth: GroundTruth, cell: Ints) -> tuple[NDArray[np.int8], Floats]:
    """[I, C] how many incorrect detections a cell draws, relative; [C] the sum over those counted.

    Unverified cells draw none. Incorrect detections in not-exhaustive cells are not counted in AP.
    """
    shape = len(truth.images), len(truth.categories)
    weight = np.zeros(shape, dtype=np.int8)
    if truth.negative is None or truth.not_exhaustive is None:
        weight[:] = 1
    else:
        weight[_list_cells(truth.negative)] = 1
    weight.reshape(-1)[cell] = _POSITIVE
    total = weight.sum(axis=0, dtype=np.float64)
    if truth.not_exhaustive is not None:
        image, category = _list_cells(truth.not_exhaustive)
        total -= np.bincount(category, weight[image, category], minlength=shape[1])
    return weight, total


def _list_cells(lists: ImageLists) -> tuple[Ints, NDArray[np.int32]]:
    return np.repeat(np.arange(len(lists.offsets) - 1), np.diff(lists.offsets)), lists.category


def _jittered(rng: np.random.Generator, box: Floats, iou: Floats, limit: Floats) -> Floats:
    """[N, 4] boxes inside or around the given ones, of IoU `iou` or a rounding more."""
    split = rng.uniform(0.3, 0.7, len(box))
    ratio = np.stack([iou**split, iou ** (1 - split)], axis=1)
    inside = rng.random((len(box), 1)) < 0.5
    size = np.where(inside, np.ceil(box[:, 2:] * ratio), np.floor(box[:, 2:] / ratio))
    shift = np.floor((box[:, 2:] - size) * rng.uniform(0.25, 0.75, (len(box), 2)))
    near = np.maximum(box[:, :2] + shift, 0)
    far = np.minimum(box[:, :2] + shift + size, limit)
    return np.concatenate([near, far - near], axis=1)


def pushed(score: Floats, push: Floats) -> Floats:
    """Scores moved down by `push` logits: s / (s + (1 - s) * e^push)."""
    return score / (score + (1 - score) * np.exp(push))
