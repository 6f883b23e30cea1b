"""Matches all detections, without a limit."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.matching.match_options import DEFAULT, MatchOptions
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth, ImageLists
from lvdet.tables.masks import require_crossings
from lvdet.tables.matches import Matches
from lvdet.tables.outcomes import Outcomes
from lvdet.tables.problems import category_rows, image_rows, pair_problems
from lvdet.tables.values import require
from lvdet.threads import thread_count

#: Area ranges in square pixels, both ends inclusive.
AREAS = MappingProxyType(
    {
        "all": (0.0, 1e5**2),
        "small": (0.0, 32.0**2),
        "medium": (32.0**2, 96.0**2),
        "large": (96.0**2, 1e5**2),
    }
)


def match(
    gt: GroundTruth,
    detections: Detections,
    options: MatchOptions = DEFAULT,
) -> Matches:
    """Matches every detection that counts with the ground truth of its image and class.

    Detections are taken by descending score, ties in file order. At each IoU threshold a detection
    takes the free ground truth of highest IoU at or above it (the later one at equal IoU); ignored
    ones only where no other matches. For LVIS files, a detection counts where its class was
    verified in the image; for COCO files, everywhere.

    exact_lvis repeats the quirks of the reference tools: a ground truth of id 0 reads as
    unmatched; LVIS annotations of area 0 are left out; where results carry boxes, a detection's
    area is its box's even when masks are compared, and its mask's where they do not.

    partners_at requests the annotation each detection is matched with; among those that are left
    where exact_lvis leaves some out.
    """
    require_tables(gt, detections)
    options = options.resolved(masks=detections.masks is not None and gt.masks is not None)
    iou, exact_lvis, levels = options.iou, options.exact_lvis, options.levels
    at = options.partners_at
    if at is not None and at not in levels:
        raise InputError(
            f"partners were requested at IoU {at:g}, which is not among the thresholds"
        )
    assert iou is not None
    require_comparable(gt, detections, iou)
    if exact_lvis and gt.federated:
        gt = without_empty(gt)
    area_from_box = takes_box_area(detections, options)
    out = _native.match(
        truth_columns(gt, masks=iou != "bbox", exact_lvis=exact_lvis),
        found_columns(gt, detections, masks=iou != "bbox" or not area_from_box),
        _native.MatchSettings(
            overlap=iou,
            thresholds=levels.tolist(),
            area_low=[low for low, _ in AREAS.values()],
            area_high=[high for _, high in AREAS.values()],
            drop_empty=gt.federated,
            area_from_box=area_from_box,
            partners_at=-1 if at is None else levels.tolist().index(at),
        ),
        thread_count(),
    )
    require_masks(out.pop("failure"), gt, detections)
    del out["objects"]
    outcomes = Outcomes(*out.pop("outcomes"))
    return Matches(**out, outcomes=outcomes, thresholds=levels, areas=tuple(AREAS), iou=iou)


def takes_box_area(detections: Detections, options: MatchOptions) -> bool:
    """Whether a detection's area is its box's rather than its mask's."""
    of_boxes = options.iou == "bbox"
    if options.exact_lvis and not (options.mask_area and not of_boxes):
        return detections.boxes_given
    return of_boxes


def truth_columns(
    gt: GroundTruth, *, masks: bool, exact_lvis: bool = False, one_class: bool = False
) -> _native.Truth:
    """The ground truth as kernels take it, with masks if they are compared; `one_class` merges all
    classes into one that counts in every image."""
    return _native.Truth(
        image=gt.image,
        category=np.zeros_like(gt.category) if one_class else gt.category,
        box=gt.box,
        area=gt.area,
        ignore=ignored(gt).view(np.uint8),
        crowd=(np.zeros_like(gt.crowd) if gt.federated else gt.crowd).view(np.uint8),
        reads_unmatched=((gt.id == 0) & exact_lvis).view(np.uint8),
        masks=gt.masks.columns if masks and gt.masks is not None else None,
        image_height=gt.images.height,
        image_width=gt.images.width,
        categories=1 if one_class else len(gt.categories),
        negative=None if one_class else _columns(gt.negative),
        not_exhaustive=None if one_class else _columns(gt.not_exhaustive),
    )


def found_columns(
    gt: GroundTruth, detections: Detections, *, masks: bool, one_class: bool = False
) -> _native.Detections:
    """Detections as kernels take them, with masks if they are needed."""
    category_row = category_rows(gt, detections)
    return _native.Detections(
        image=detections.image,
        category=detections.category,
        image_rows=image_rows(gt, detections),
        category_rows=np.zeros_like(category_row) if one_class else category_row,
        score=detections.score,
        box=detections.box,
        masks=detections.masks.columns if masks and detections.masks is not None else None,
    )


def ignored(gt: GroundTruth) -> NDArray[np.bool_]:
    """[M] annotations that need not be found: LVIS's `ignore`, COCO's crowds."""
    return gt.ignore if gt.federated else gt.crowd


def to_be_found(gt: GroundTruth, exact_lvis: bool = False) -> NDArray[np.bool_]:
    """[M] annotations that count."""
    low, high = AREAS["all"]
    found: NDArray[np.bool_] = ~ignored(gt) & (gt.area >= low) & (gt.area <= high)
    return found & (gt.area > 0) if exact_lvis and gt.federated else found


def require_masks(
    failure: tuple[str, bool, int] | None, gt: GroundTruth, detections: Detections
) -> None:
    """Reports a mask that a kernel could not read: the problem, whether it belongs to a detection,
    and its row."""
    if failure is None:
        return
    what, of_detection, row = failure
    place = detections.named(row) if of_detection else f"{gt.source}, annotation, row {row:,}"
    raise InputError(f"{place}: {what}")


def without_empty(gt: GroundTruth) -> GroundTruth:
    """The ground truth without annotations of area 0, as lvis treats it."""
    rows = np.flatnonzero((gt.area > 0) & (gt.area < np.inf))
    if len(rows) == len(gt):
        return gt
    return gt.where(rows)


def require_tables(gt: object, detections: object) -> None:
    """Raises unless both are tables (and not, for example, paths)."""
    for table, kind, read in (
        (gt, GroundTruth, "read_ground_truth"),
        (detections, Detections, "read_detections"),
    ):
        if not isinstance(table, kind):
            raise InputError(
                f"{table!r} is not a {kind.__name__} table: read it with lvdet.{read} first"
            )


def require_comparable(gt: GroundTruth, detections: Detections, iou: str) -> None:
    """Raises for tables that do not belong together or lack the masks to compare."""
    require(pair_problems(gt, detections))
    if iou == "bbox":
        return
    if detections.masks is None and len(detections):
        raise InputError(f"{detections.source} has no masks, but iou is {iou!r}")
    for table in (gt, detections):
        if table.masks is None:
            if table is gt and len(gt):
                raise InputError(f"{gt.source} was read without masks, but iou is {iou!r}")
            continue
        missing = np.flatnonzero(table.masks.kind == 0)
        if len(missing):
            raise InputError(f"{table.source}, row {missing[0]:,}: has no mask")
        rows = gt.image if table is gt else image_rows(gt, detections)[detections.image]
        require_crossings(table.masks, gt.images.width, rows, table.source)


def _columns(
    lists: ImageLists | None,
) -> (
    tuple[np.ndarray[tuple[int], np.dtype[np.int32]], np.ndarray[tuple[int], np.dtype[np.int64]]]
    | None
):
    return None if lists is None else (lists.category, lists.offsets)
