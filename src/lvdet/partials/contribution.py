"""The columns of a partial from the tables of its images, and the tables of an evaluation from
them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import counted_classes
from lvdet.evaluation.pair import Pair
from lvdet.matching.match import AREAS, match
from lvdet.matching.match_options import MatchOptions
from lvdet.partials.part_columns import PartColumns
from lvdet.partials.truth_facts import facts_of, no_lists, objects_of_cells
from lvdet.tables.categories import Categories
from lvdet.tables.columns import take
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth, Images
from lvdet.tables.masks import no_masks
from lvdet.tables.matches import Matches
from lvdet.tables.outcomes import Outcomes
from lvdet.tables.problems import rows_of
from lvdet.tables.results import Results, ScoreFacts
from lvdet.threads import thread_count


@dataclass(frozen=True)
class Form:
    """How the detections of a partial were compared; none without detections.

    iou: "bbox", "segm" or "boundary"
    masks, boxes_given: whether they have masks, and boxes of their own
    mask_digest: of the annotations' masks, if they were compared
    """

    iou: str
    masks: bool
    boxes_given: bool
    mask_digest: str = ""


def part_of(
    gt: GroundTruth,
    results: Results,
    options: MatchOptions,
    selected: NDArray[np.int64],
    *,
    position: NDArray[np.int64],
    image_ids: NDArray[np.int64],
    own_truth: bool,
) -> PartColumns:
    """All rows of results as columns.

    options: with an iou; selected: rows of the evaluated classes; position: [N] the place of each
    row of the ranking in the whole, rising in each image; image_ids: all images of the part, rising
    """
    ranking, detections = results.ranking, results.detections
    matches = results.placed(match(gt, detections, options))
    present = _native.count_rows(ranking.category, len(ranking.category_ids))
    category_ids = np.sort(ranking.category_ids[(present > 0) | (results.per_class > 0)])
    if own_truth:
        category_ids = np.union1d(category_ids, gt.categories.ids)
    of_image = rows_of(image_ids, ranking.image_ids)
    place = rows_of(category_ids, ranking.category_ids)
    image, category = take(of_image, ranking.image), take(place, ranking.category)
    here, held = of_image >= 0, place >= 0
    image_rows = np.zeros(len(image_ids), dtype=np.int64)
    image_rows[of_image[here]] = results.per_image[here]
    scores = results.scores
    if scores is None:
        scores = ScoreFacts.of(ranking.category, ranking.score, len(place))
    counting = counted_classes(gt, ranking, selected, options.exact_lvis)
    classes = [
        *(results.per_class, scores.lowest, scores.highest, scores.outside),
        np.ones(len(place), dtype=bool) if counting is None else counting,
    ]
    empty = [0, np.inf, -np.inf, 0, 0]  # classes of the annotations without detections
    of_class = []
    for column, nothing in zip(classes, empty, strict=True):
        ordered = np.full(len(category_ids), nothing, dtype=column.dtype)
        ordered[place[held]] = column[held]
        of_class.append(ordered)
    drawn = np.zeros(0, dtype=np.int32)
    drawn_place = drawn
    cells = drawn, drawn, np.zeros((0, len(matches.areas) + 1), dtype=np.int32)
    if own_truth:
        cell_image, cell_category, objects = objects_of_cells(gt, options.exact_lvis)
        cells = (
            rows_of(image_ids, gt.images.ids)[cell_image],
            rows_of(category_ids, gt.categories.ids)[cell_category],
            objects,
        )
    else:
        sampled = facts_of(gt).drawn_place[rows_of(gt.images.ids, image_ids)]
        drawn = np.flatnonzero((sampled >= 0) & (image_rows > 0)).astype(np.int32)
        drawn_place = sampled[drawn]
    order = np.argsort(matches.detection)  # as in the table
    outcomes = matches.outcomes.ordered(order.astype(np.int32))
    assert matches.contested is not None
    contested, reached = matches.contested
    in_table = np.empty(len(matches), dtype=np.int32)
    in_table[order] = np.arange(len(matches), dtype=np.int32)
    boxed = np.arange(len(detections), dtype=np.int32) if results.rows is None else results.rows
    category_rows, lowest, highest, outside, in_budgets = of_class
    part = PartColumns(
        *(image_ids, image_rows, category_ids, category_rows),
        *(lowest, highest, outside, in_budgets.astype(np.uint8)),
        *(image, category, ranking.score, position),
        matches.detection[order],
        *outcomes.columns,
        *(in_table[contested], reached),
        *(boxed, detections.box),
        *(drawn, drawn_place),
        *cells,
    )
    return part.in_file_order()


def pair_of(
    gt: GroundTruth, part: PartColumns, options: MatchOptions, form: Form, source: str
) -> Pair:
    """Annotations and the rows of a part, with the match that the rows had in their parts."""
    classes = rows_of(gt.categories.ids, part.category_ids)
    of_matched = classes[part.category[part.matched]]
    if (of_matched < 0).any() or (classes[part.object_category] < 0).any():
        raise InputError("the partial is damaged: it has matches of classes that do not exist")
    ranking = part.ranking(source)
    boxed = part.boxed
    detections = Detections(
        part.image[boxed],
        part.category[boxed],
        part.score[boxed],
        part.box,
        part.image_ids,
        part.category_ids,
        no_masks(len(boxed)) if form.masks else None,
        boxes_given=form.boxes_given,
        source=source,
    )
    results = Results(
        ranking,
        detections,
        boxed,
        int(part.image_rows.sum()),
        part.image_rows,
        part.category_rows,
        ScoreFacts(part.lowest, part.highest, part.outside),
        matchable=False,
    )
    if len(part.objects):
        truth = np.zeros((len(gt.categories), part.objects.shape[1] - 1), dtype=np.int64)
        np.add.at(truth, classes[part.object_category], part.objects[:, :-1])
    else:
        truth = _truth(gt, options, form)
    matches = _matches(gt, part, options, of_matched, truth)
    return Pair(gt, results, options, matches=matches)


def own_annotations(part: PartColumns, categories: Categories, *, federated: bool) -> GroundTruth:
    """A table of the part's images and no annotations: those are in the part, as numbers."""
    images = len(part.image_ids)
    size = np.zeros(images, dtype=np.int32)
    none = np.zeros(0, dtype=np.int32)
    lists = no_lists(images) if federated else None
    return GroundTruth(
        Images(part.image_ids, size, size, ("",) * images),
        categories,
        id=none.astype(np.int64),
        image=none,
        category=none,
        box=np.zeros((0, 4)),
        area=np.zeros(0),
        ignore=none.astype(bool),
        crowd=none.astype(bool),
        masks=None,
        negative=lists,
        not_exhaustive=lists,
        source="targets",
    )


def _truth(gt: GroundTruth, options: MatchOptions, form: Form) -> NDArray[np.int64]:
    """[C, A] the objects to find."""
    none = np.zeros(0, dtype=np.int64)
    empty = Detections.from_arrays(
        none, none, none, np.zeros((0, 4)), no_masks(0) if form.iou != "bbox" else None
    )
    return match(gt, empty, options).truth


def _matches(
    gt: GroundTruth,
    part: PartColumns,
    options: MatchOptions,
    category: NDArray[np.int32],
    truth: NDArray[np.int64],
) -> Matches:
    """The match of the rows, ordered anew; category: [K] of the matched rows."""
    image = part.image[part.matched]
    score = part.score[part.matched]
    # By image, class and rank in it: the order among equal scores where images are ranked together.
    _, cell = np.unique(image.astype(np.int64) * len(gt.categories) + category, return_inverse=True)
    cells = int(cell.max(initial=-1)) + 1
    by_cell, _ = _native.rank_groups(
        cell.reshape(-1).astype(np.int32), cells, score, thread_count()
    )
    position, together = _native.rank_classes(
        score[by_cell], category[by_cell], len(gt.categories), thread_count()
    )
    order = by_cell[position]
    place = np.empty(len(order), dtype=np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    counts = np.bincount(category, minlength=len(gt.categories))
    return Matches(
        detection=part.matched[order],
        position=position,
        together=together,
        category_offsets=np.append(0, np.cumsum(counts)),
        outcomes=Outcomes(part.wrong, part.hits, part.bits).ordered(order),
        truth=truth,
        thresholds=options.levels,
        areas=tuple(AREAS),
        iou=str(options.iou),
        contested=(place[part.contested], part.reached),
    )
