"""Everything a report says about one detector, computed before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from lvdet.diagnosis.diagnose import diagnose_pair
from lvdet.diagnosis.diagnosis_result import Diagnosis
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.precision_recall import PrecisionRecall, precision_recall
from lvdet.evaluation.protocols import (
    FIXED_PER_CLASS,
    LVIS_PER_IMAGE,
    Plan,
    evaluate_pair,
    old_budget,
)
from lvdet.evaluation.score_levels import ScoreLevels, score_levels
from lvdet.files.progress import Progress, track
from lvdet.limits.budgets import PerClass
from lvdet.reporting.calibration_study import (
    CalibrationSource,
    CalibrationStudy,
    UncalibratedError,
    study_calibration,
)
from lvdet.reporting.detection_pictures import Picture, PictureFolder, take_pictures
from lvdet.studies.budget_tables import BudgetTable, Limits
from lvdet.studies.class_caps import largest_class, search_caps
from lvdet.studies.sweep import sweep_pair
from lvdet.studies.sweep_result import Sweep

_PER_IMAGE = (10, 30, 100, 300, 1_000, 3_000, 10_000)
_PER_CLASS = (*_PER_IMAGE, 30_000, 100_000)
#: Tables of limits that are drawn: per image, the same after a class cap, and per class.
BY_IMAGE = BudgetTable(
    "by-image", "AP by detections per image", tuple(Limits(one) for one in (*_PER_IMAGE, None))
)
RERANKED = "re-ranked"
BY_CLASS = BudgetTable(
    "by-class",
    "AP by detections per class, without a limit per image",
    tuple(Limits(dets_per_class=one) for one in (*_PER_CLASS, None)),
)


@dataclass(frozen=True, eq=False)
class Study:
    """Everything about one detector.

    name:     what to call it
    limits:   AP under the limits of BY_IMAGE, RERANKED (for LVIS files) and BY_CLASS
    class_cap: the cap of RERANKED and of pictures
    calibration: None if scores cannot be calibrated; `uncalibrated` says why
    pictures: images with their detections, if there is a folder of images
    """

    name: str
    evaluation: Evaluation
    limits: Sweep
    class_cap: int
    curves: PrecisionRecall
    levels: ScoreLevels
    calibration: CalibrationStudy | None
    uncalibrated: str
    diagnosis: Diagnosis
    pictures: list[Picture]


def study(
    pair: Pair,
    name: str,
    source: CalibrationSource,
    folder: PictureFolder | None = None,
    *,
    progress: Progress | None = None,
) -> Study:
    """Studies a pair whose detections were all read; as whole rows if there is a folder of images
    to draw them on."""
    gt = pair.gt
    cap = _class_cap(pair)
    tables = [BY_IMAGE, *([_reranked(cap)] if gt.federated else []), BY_CLASS]
    fixed = PerClass(FIXED_PER_CLASS)
    calibration, reason = None, ""
    try:
        with track(progress, f"calibrating {name}", "steps") as update:
            calibration = study_calibration(
                pair,
                source,
                all_scores=folder is not None,
                update=update,
            )
    except UncalibratedError as error:
        reason = str(error)
    pictures = []
    if folder is not None:
        after = None if calibration is None else calibration.rescored
        with track(progress, f"drawing {name}", "images") as update:
            pictures = take_pictures(pair, after, folder, class_cap=cap, update=update)
    evaluation = evaluate_pair(pair, Plan())
    limits = sweep_pair(pair, tables)
    pair.forget()  # the rest needs the match alone
    return Study(
        name,
        evaluation,
        limits,
        cap,
        precision_recall(pair, [fixed]),
        score_levels(pair, old_budget(gt.federated)),
        calibration,
        reason,
        diagnose_pair(pair),
        pictures,
    )


def _class_cap(pair: Pair) -> int:
    """The class cap to re-rank with: AP-Fixed's, or, if no class has more detections, the one
    that raises AP-Old most."""
    largest = largest_class(pair)
    if largest > FIXED_PER_CLASS or not pair.gt.federated:
        return FIXED_PER_CLASS
    return search_caps(pair, LVIS_PER_IMAGE, largest).best


def _reranked(cap: int) -> BudgetTable:
    return BudgetTable(
        RERANKED,
        "AP by detections per image, with a class cap applied first",
        tuple(Limits(one, cap) for one in _PER_IMAGE),
    )
