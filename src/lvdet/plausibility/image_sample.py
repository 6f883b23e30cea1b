"""A sample of images with their objects and detections, to try other readings of a file on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.matching.match import to_be_found
from lvdet.tables.drawn_images import WITH_BOXES, drawn_images
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows, image_rows
from lvdet.tables.results import Results
from lvdet.threads import thread_count

#: Number of images used, and the maximum of their rows.
_IMAGES, _ROWS = 200, 30_000


@dataclass(frozen=True, eq=False)
class Sample:
    """Some images that have objects and detections.

    images: [S] rows of the annotations' images, rising
    row_image:    [R] place in `images` of each detection; by image, in an image by descending score
    row_category: [R] place among the ranking's category ids
    row_rank:     [R] place in its image, 0 for the highest score
    score: [R]; box: [R, 4], NaN where the box is not kept
    objects: [S] how many objects each image has
    """

    images: NDArray[np.int64]
    row_image: NDArray[np.int64]
    row_category: NDArray[np.int32]
    row_rank: NDArray[np.int64]
    score: NDArray[np.float64]
    box: NDArray[np.float64]
    objects: NDArray[np.int64]

    def where(self, keep: NDArray[np.bool_]) -> Sample:
        """The detections selected by a mask ([R]), ranked again."""
        image = self.row_image[keep]
        return Sample(
            self.images,
            image,
            self.row_category[keep],
            _ranks(image, len(self.images)),
            self.score[keep],
            self.box[keep],
            self.objects,
        )

    def first(self, images: int) -> Sample:
        """The same without images after the first ones, which have no detections."""
        return replace(self, images=self.images[:images], objects=self.objects[:images])


@dataclass(frozen=True, eq=False)
class Objects:
    """The objects to find, by image.

    rows: [G] rows of the annotations; offsets: [I + 1] where those of each image begin
    """

    rows: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @staticmethod
    def of(gt: GroundTruth) -> Objects:
        """All objects that count."""
        rows = np.flatnonzero(to_be_found(gt) & (gt.box[:, 2] > 0) & (gt.box[:, 3] > 0))
        order = np.argsort(gt.image[rows], kind="stable")
        counts = np.bincount(gt.image[rows], minlength=len(gt.images))
        return Objects(rows[order], np.append(0, np.cumsum(counts)))

    @property
    def counts(self) -> NDArray[np.int64]:
        """[I] of each image."""
        counts: NDArray[np.int64] = np.diff(self.offsets)
        return counts


def take_sample(
    gt: GroundTruth,
    results: Results,
    objects: Objects,
    *,
    images: int = _IMAGES,
    rows: int = _ROWS,
) -> Sample:
    """The detections, of known classes, of images drawn at random with a fixed seed."""
    ranking = results.ranking
    of_id = image_rows(gt, ranking)
    there = np.zeros(len(gt.images), dtype=np.int64)
    np.add.at(there, of_id[of_id >= 0], results.per_image[of_id >= 0])
    order = drawn_images(len(gt.images))
    drawn = order[((objects.counts > 0) & (there > 0))[order]][:images]
    within = np.cumsum(there[drawn]) <= rows
    within[:1] = True
    taken = np.sort(drawn[within])
    place = np.full(len(gt.images) + 1, -1, dtype=np.int32)
    place[taken] = np.arange(len(taken), dtype=np.int32)
    of_id = place[of_id]
    member = (of_id >= 0).view(np.uint8)
    places = _native.rows_of_members(ranking.image, member, thread_count())
    # Rows of unknown classes are not always read.
    places = places[known_classes(gt, results)[ranking.category[places]] >= 0]
    image, score = of_id[ranking.image[places]], ranking.score[places]
    order, _ = _native.rank_groups(image, max(len(taken), 1), score, thread_count())
    image = image[order].astype(np.int64)
    return Sample(
        taken,
        image,
        ranking.category[places[order]],
        _ranks(image, len(taken)),
        score[order],
        boxes_of(results, places[order]),
        objects.counts[taken],
    )


def verified(gt: GroundTruth, results: Results, sample: Sample) -> Sample:
    """The detections of classes verified in their image; other boxes are not always read."""
    kept = ~np.isnan(sample.box[:, 0])
    if gt.negative is None:
        return sample.where(kept)
    classes = len(gt.categories)
    lists = gt.negative
    ruled_out = np.repeat(np.arange(len(gt.images)), np.diff(lists.offsets))
    counts = np.zeros((len(sample.images), classes + 1), dtype=bool)
    place = np.full(len(gt.images), -1, dtype=np.int64)
    place[sample.images] = np.arange(len(sample.images))
    for image, kind in ((gt.image, gt.category), (ruled_out, lists.category)):
        here = place[image] >= 0
        counts[place[image[here]], kind[here]] = True
    known = known_classes(gt, results)[sample.row_category]
    return sample.where(kept & counts[sample.row_image, known])


def with_all_boxes(gt: GroundTruth, results: Results, objects: Objects) -> Sample:
    """The detections of images whose boxes are all read, whatever their class."""
    sample = take_sample(gt, results, objects, images=WITH_BOXES, rows=len(results.ranking) + 1)
    read = np.zeros(len(gt.images), dtype=bool)
    read[drawn_images(len(gt.images))[:WITH_BOXES]] = True
    return sample.where(read[sample.images][sample.row_image])


def boxes_of(results: Results, rows: NDArray[np.int32] | NDArray[np.int64]) -> NDArray[np.float64]:
    """[R, 4] the boxes of rows of the ranking, NaN where they are not kept."""
    box = results.detections.box
    if results.rows is None:
        return box[rows]
    found = np.full((len(rows), 4), np.nan)
    if len(results.rows):
        at = np.minimum(np.searchsorted(results.rows, rows), len(results.rows) - 1)
        kept = results.rows[at] == rows
        found[kept] = box[at[kept]]
    return found


def _ranks(image: NDArray[np.int64], images: int) -> NDArray[np.int64]:
    """[R] the rank of each row within its image, whose rows are adjacent."""
    begins = np.append(0, np.cumsum(np.bincount(image, minlength=images)))
    ranks: NDArray[np.int64] = np.arange(len(image)) - begins[image]
    return ranks


def known_classes(gt: GroundTruth, results: Results) -> NDArray[np.int64]:
    """[category ids of the ranking] the class of each, -1 where unknown."""
    return category_rows(gt, results.ranking).astype(np.int64)
