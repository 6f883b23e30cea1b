"""Which objects are found, whatever the classes of the detections."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.matching.match import (
    AREAS,
    found_columns,
    require_comparable,
    require_masks,
    require_tables,
    takes_box_area,
    truth_columns,
)
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.threads import thread_count


def objects_found(
    gt: GroundTruth, detections: Detections, options: MatchOptions
) -> NDArray[np.bool_]:
    """[M, A, T] which objects detections of any class match, in each range of area and at each
    threshold; False where an object need not be found there.

    All classes of an image are matched together, by the rules of `match`: detections by descending
    score, equal scores in the order of the table, and at equal overlap the later object. `options`
    have an iou.
    """
    require_tables(gt, detections)
    assert options.iou is not None
    require_comparable(gt, detections, options.iou)
    masks, levels = options.iou != "bbox", options.levels
    area_from_box = takes_box_area(detections, options)
    out = _native.match(
        truth_columns(gt, masks=masks, exact_lvis=options.exact_lvis, one_class=True),
        found_columns(gt, detections, masks=masks or not area_from_box, one_class=True),
        _native.MatchSettings(
            overlap=options.iou,
            thresholds=levels.tolist(),
            area_low=[low for low, _ in AREAS.values()],
            area_high=[high for _, high in AREAS.values()],
            drop_empty=gt.federated,
            area_from_box=area_from_box,
            partners_at=-1,
            objects=True,
        ),
        thread_count(),
    )
    require_masks(out["failure"], gt, detections)
    found = np.unpackbits(out["objects"], axis=2, count=len(levels), bitorder="little")
    return found.view(np.bool_)
