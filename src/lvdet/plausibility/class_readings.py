"""Detects class ids that fit only under another mapping."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lvdet.plausibility.finding import Finding
from lvdet.plausibility.image_sample import (
    Objects,
    Sample,
    known_classes,
    take_sample,
    with_all_boxes,
)
from lvdet.plausibility.pairing import Pairing
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import rows_of
from lvdet.tables.results import Results

_Rows = NDArray[np.int64]
#: How many of an image's highest-scored detections are used: per object, and at most.
_PER_OBJECT, _PER_IMAGE = 2, 40
#: The same if every overlap with an object counts.
_MOST = 100
#: If this share of objects is found beyond chance, classes are correct.
_WEAK = 0.15
#: Otherwise, use this many images and rows.
_IMAGES, _ROWS = 5_000, 1_500_000
#: A mapping has to find this share of the objects that chance does not, …
_SHARE = 0.2
#: … including this many, in this many classes, that are not found as given, …
_GAIN, _CLASSES = 20, 4
#: … with no class contributing more than this share, …
_ONE_CLASS = 0.6
#: … this many times as many as are found as given, and this many standard errors beyond chance.
_RATIO, _ERRORS = 4, 6
#: Minimums for a learned mapping, on objects it was not learned from: the share found, their
#: number, their classes, and the ratio to those found as given.
_LEARNED, _BEYOND, _MANY = 0.03, 8, 8
_LEARNED_RATIO = 2.5
#: Objects needed to assign a class to an id.
_FEWEST = 2


_LEARNED_NAME = "with most ids standing for one other class each"


class Mapping(NamedTuple):
    """The class that each id of the file stands for: [ids] rows of the categories, -1 for none."""

    name: str
    rows: _Rows


class Evidence(NamedTuple):
    """Detections and objects that belong together, whatever their class.

    row_class: [P] place among the file's category ids; truth_class: [P] row of the categories
    target: [P] object; target_class: [G] class of each object; image: [G] its place in the sample
    present: [S, ids] the ids that the best detections of each image have, where by_image
    given: [ids] the class of each id as given
    by_image: whether only their image is known
    """

    row_class: _Rows
    truth_class: _Rows
    target: _Rows
    target_class: _Rows
    image: _Rows
    present: NDArray[np.bool_]
    given: _Rows
    by_image: bool

    def found(self, mapping: _Rows) -> NDArray[np.bool_]:
        """[G] the objects found under a mapping of classes."""
        hit = mapping[self.row_class] == self.truth_class
        found = np.zeros(len(self.target_class), dtype=bool)
        found[self.target[hit]] = True
        return found

    def chance(self, mapping: _Rows) -> float:
        """The share of objects that would be found if an image's detections came from any other
        image."""
        chances = self._chances(mapping)
        return float(chances.mean()) if len(chances) else 0.0

    def sureness(self, mapping: _Rows) -> float:
        """The number of standard errors by which more is found than by chance. The unit is a class
        in an image, because objects of one class in one image are found together if only the image
        is known."""
        if not self.by_image:
            return np.inf
        key = self.image * (int(self.target_class.max(initial=0)) + 1) + self.target_class
        first = np.unique(key, return_index=True)[1]
        chances = self._chances(mapping)[first]
        error = np.sqrt((chances * (1 - chances)).sum())
        more = self.found(mapping)[first].sum() - chances.sum()
        return float(more / error) if error else np.inf

    def _chances(self, mapping: _Rows) -> NDArray[np.float64]:
        """[G] the chance of finding each object."""
        if not self.by_image:
            return np.zeros(len(self.target_class))
        share = np.zeros(self.present.shape[1])
        known = mapping >= 0
        np.add.at(share, mapping[known], self.present.mean(axis=0)[: len(mapping)][known])
        # More detections are used of images with many objects.
        number = self.present.sum(axis=1)
        weight = number / max(number.mean(), 1)
        chances: NDArray[np.float64] = np.minimum(share[self.target_class] * weight[self.image], 1)
        return chances

    def part(self, images: NDArray[np.bool_]) -> Evidence:
        """The part of the evidence that belongs to some images ([S])."""
        objects = images[self.image]
        pairs = objects[self.target]
        place = np.cumsum(objects) - 1
        return Evidence(
            self.row_class[pairs],
            self.truth_class[pairs],
            place[self.target[pairs]],
            self.target_class[objects],
            (np.cumsum(images) - 1)[self.image[objects]],
            self.present,
            self.given,
            self.by_image,
        )


def misread_classes(
    gt: GroundTruth, results: Results, sample: Sample, objects: Objects
) -> list[Finding]:
    """Whether class ids fit only under another mapping."""
    given = known_classes(gt, results)
    evidence = gather(gt, results, sample, objects, sample.images)
    found = evidence.found(given)
    if not len(found) or found.mean() - evidence.chance(given) >= _WEAK:
        return []
    sample = take_sample(gt, results, objects, images=_IMAGES, rows=_ROWS)
    evidence = gather(gt, results, sample, objects, sample.images)
    found = evidence.found(given)
    if len(found) < _GAIN:
        return []
    best: tuple[float, Mapping] | None = None
    for mapping in mappings(gt, results):
        share = _fits(evidence, found, mapping.rows)
        if share is not None and (best is None or share > best[0]):
            best = share, mapping
    if best is None:  # a mapping learned from half of the images, judged by the others
        if gt.federated:
            sample = with_all_boxes(gt, results, objects)
            evidence = gather(gt, results, sample, objects, sample.images, overlapping=True)
        halves = np.arange(len(sample.images)) % 2 == 0
        mapping = _permuted(evidence.part(halves), given)
        evidence = evidence.part(~halves)
        found = evidence.found(given)
        fits = _shows if gt.federated else _fits
        share = fits(evidence, found, mapping.rows) if len(found) >= _GAIN else None
        if share is None:
            return []
        best = share, mapping
    return [_finding(gt, results, best[1], float(found.mean()), best[0], len(found))]


def _shows(evidence: Evidence, given: NDArray[np.bool_], mapping: _Rows) -> float | None:
    """The share of objects found under a learned mapping, if it cannot be chance, or None. Of
    many classes only a few are learned, so the share may be low."""
    found = evidence.found(mapping)
    share, before = float(found.mean()), float(given.mean())
    gained = np.bincount(evidence.target_class[found & ~given], minlength=1)
    diverse = (gained > 0).sum() >= _MANY and gained.max() <= _ONE_CLASS * gained.sum()
    enough = share >= _LEARNED and share * len(found) >= _BEYOND
    clear = enough and share >= _LEARNED_RATIO * before
    return share if diverse and clear else None


def gather(
    gt: GroundTruth,
    results: Results,
    sample: Sample,
    objects: Objects,
    images: _Rows,
    *,
    overlapping: bool = False,
) -> Evidence:
    """Detections beside the objects of their images. LVIS files keep boxes of verified classes
    only, so all classes among an image's best detections count; otherwise, detections that overlap
    an object by half."""
    by_image = gt.federated and not overlapping
    most = np.minimum(_PER_OBJECT * sample.objects + 5, _PER_IMAGE)
    if overlapping:
        most[:] = _MOST
    top = sample.where(sample.row_rank < most[sample.row_image])
    pairing = Pairing.of(top, objects, images)
    ids, classes = len(results.ranking.category_ids), len(gt.categories)
    row, target = pairing.row, pairing.target
    present = np.zeros((0, max(ids, classes)), dtype=bool)
    if by_image:
        present = np.zeros((len(top.images), max(ids, classes)), dtype=bool)
        present[top.row_image, top.row_category] = True
    else:
        near = pairing.overlapping(gt, top.box)
        row, target = row[near], target[near]
    kind = gt.category[pairing.objects].astype(np.int64)
    return Evidence(
        top.row_category[row].astype(np.int64),
        kind[target],
        target,
        kind,
        np.repeat(np.arange(len(images)), objects.counts[images]),
        present,
        known_classes(gt, results),
        by_image,
    )


def mappings(gt: GroundTruth, results: Results) -> Iterator[Mapping]:
    """The usual mappings that differ from the given one, each once."""
    ids, wanted = gt.categories.ids, results.ranking.category_ids
    known = known_classes(gt, results)
    by_name = np.argsort(np.array([name.lower() for name in gt.categories.names]), kind="stable")
    every = np.arange(len(ids))
    named = [
        ("with every id one higher", rows_of(ids, wanted + 1)),
        ("with every id one lower", rows_of(ids, wanted - 1)),
    ]
    for start in (0, 1):
        for order, text in ((every, "by id"), (by_name, "by name")):
            inside = (wanted >= start) & (wanted < len(ids) + start)
            rows = np.where(inside, order[np.where(inside, wanted - start, 0)], -1)
            named.append((f"as places from {start} in the classes ordered {text}", rows))
    distinct = [known]
    for name, rows in named:
        if not any(np.array_equal(rows, other) for other in distinct):
            distinct.append(rows.astype(np.int64))
            yield Mapping(name, rows.astype(np.int64))


def _fits(evidence: Evidence, given: NDArray[np.bool_], mapping: _Rows) -> float | None:
    """The share of objects found under a mapping, if it is far better than as given, or None."""
    found = evidence.found(mapping)
    share, chance = float(found.mean()), evidence.chance(mapping)
    beyond = (share - chance) / max(1 - chance, _SHARE)  # of what chance leaves
    before = float(given.mean()) - evidence.chance(evidence.given)
    gained = np.bincount(evidence.target_class[found & ~given])
    classes = min(_CLASSES, len(np.unique(evidence.target_class)))
    enough = gained.sum() >= _GAIN and (gained > 0).sum() >= max(classes, 2)
    diverse = classes <= 3 or gained.max(initial=0) <= _ONE_CLASS * gained.sum()
    clear = beyond >= _SHARE and beyond >= _RATIO * before
    sure = evidence.sureness(mapping) >= _ERRORS
    return share if enough and diverse and clear and sure else None


def _permuted(evidence: Evidence, given: _Rows) -> Mapping:
    """For each id the class that its detections are found with most, that no other id is found with
    more; as given if there is none."""
    ids = len(given)
    # An object counts once for each id.
    columns = [evidence.target, evidence.row_class, evidence.truth_class]
    key = np.unique(np.stack(columns), axis=1)
    (of, truth), together = np.unique(key[1:], axis=1, return_counts=True)
    total, there = np.bincount(key[1]), np.bincount(evidence.target_class)
    # Together as often as possible, and each seldom without the other.
    likeness = together / np.sqrt(total[of] * there[truth])
    likeness[together < _FEWEST] = 0
    rows = given.copy()
    order = np.lexsort((of, truth, -likeness))
    best_of, best_for = np.full(ids, True), np.full(len(there), True)
    for k in order[: int((likeness > 0).sum())].tolist():
        if best_of[of[k]] and best_for[truth[k]]:
            rows[of[k]] = truth[k]
            best_of[of[k]] = best_for[truth[k]] = False
    return Mapping(_LEARNED_NAME, rows)


def _finding(
    gt: GroundTruth,
    results: Results,
    mapping: Mapping,
    before: float,
    share: float,
    objects: int,
) -> Finding:
    ids = results.ranking.category_ids
    if mapping.name == _LEARNED_NAME and gt.federated:
        return Finding(
            "classes",
            objects,
            {"objects": objects, "found_as_given": before, "found_otherwise": share},
            f"The class ids in {results.source} consistently stand for other classes: {share:.1%} "
            f"of {objects:,} objects are found with their class under a mapping learned from other "
            f"images, {before:.1%} as given.",
            "Write category_id as in the annotations: the model's class list is in another order.",
        )
    fits = mapping.rows >= 0
    changed = {
        int(old): int(gt.categories.ids[row])
        for old, row in zip(ids[fits], mapping.rows[fits], strict=True)
    }
    what = (
        "have their class among the best detections of their image"
        if gt.federated
        else ("are found with their class")
    )
    return Finding(
        "classes",
        objects,
        {"objects": objects, "found_as_given": before, "found_otherwise": share},
        f"The class ids in {results.source} fit only when read {mapping.name}: {share:.1%} of "
        f"{objects:,} objects {what} that way, {before:.1%} as given.",
        f"Write the mapping with: lvdet check {gt.source} {results.source} "
        f"--category-map MAP.json, and repair the file with: lvdet convert {results.source} "
        "-o FIXED.json --category-map MAP.json.",
        changed,
    )
