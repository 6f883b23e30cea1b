"""All that a report says of one detector, worked out before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from lvdet.diagnosis.diagnose import diagnose_pair
from lvdet.diagnosis.result import Diagnosis
from lvdet.errors import InputError
from lvdet.limit.budgets import PerClass
from lvdet.metrics.inputs import Pair, Watch, watched
from lvdet.metrics.precision_recall import PrecisionRecall, precision_recall
from lvdet.metrics.protocols import FIXED_PER_CLASS, evaluate, old_budget
from lvdet.metrics.result import Evaluation
from lvdet.metrics.score_levels import ScoreLevels, score_levels
from lvdet.metrics.sweep import sweep
from lvdet.metrics.sweep_result import Sweep
from lvdet.report.calibration import CalibrationSource, CalibrationStudy, study_calibration
from lvdet.report.pictures import Picture, PictureFolder, take_pictures

#: Limits that are drawn: detections an image, and a class.
PER_IMAGE = (10, 30, 100, 300, 1_000, 3_000, 10_000, None)
PER_CLASS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, None)


@dataclass(frozen=True, eq=False)
class Study:
    """What is known of a detector.

    name:     what to call it
    by_image: AP under limits an image, with and without re-ranking
    by_class: AP under limits a class
    calibration: None where scores cannot be calibrated; `uncalibrated` says why
    pictures: images with their detections, where there is a folder of images
    """

    name: str
    evaluation: Evaluation
    by_image: Sweep
    by_class: Sweep
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
    threads: int | None = None,
    watch: Watch | None = None,
) -> Study:
    """What is known of a pair whose detections were all read; as whole rows, where there is a
    folder of images to draw them on."""
    gt, results, iou = pair.gt, pair.results, pair.iou
    rerank = FIXED_PER_CLASS if gt.federated else None
    fixed = PerClass(FIXED_PER_CLASS)
    evaluation = evaluate(gt, results, iou=iou, threads=threads)
    matches = pair.matched(threads=threads)
    calibration, reason = None, ""
    try:
        with watched(watch, f"calibrating {name}", "steps") as progress:
            calibration = study_calibration(
                pair,
                matches,
                source,
                all_scores=folder is not None,
                threads=threads,
                progress=progress,
            )
    except InputError as error:
        reason = str(error)
    pictures = []
    if folder is not None:
        scores = None if calibration is None else calibration.scores
        with watched(watch, f"drawing {name}", "images") as progress:
            pictures = take_pictures(pair, matches, scores, folder, threads, progress)
    return Study(
        name,
        evaluation,
        sweep(gt, results, per_image=PER_IMAGE, rerank=rerank, iou=iou, threads=threads),
        sweep(gt, results, per_class=PER_CLASS, iou=iou, threads=threads),
        precision_recall(pair, matches, [fixed], threads=threads),
        score_levels(pair, old_budget(gt.federated), threads=threads),
        calibration,
        reason,
        diagnose_pair(pair, threads=threads),
        pictures,
    )
