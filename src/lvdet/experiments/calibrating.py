"""The effect of calibration on a run: the paper's methods, fitted on training images and on the
evaluated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lvdet.calibration.calibrate import SHOWN
from lvdet.calibration.fitting import IDENTITY, Recipe
from lvdet.calibration.labelled_scores import (
    IOU_THRESHOLD,
    Labelling,
    load_best,
    load_samples,
    require_same_classes,
)
from lvdet.calibration.trials import Judge, Trained
from lvdet.experiments.examples import calibration_example
from lvdet.experiments.resampling import claimed, resampled
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.tables.ground_truth import GroundTruth

#: The method of the example.
_SHOWN_BEFORE_AND_AFTER = "beta"


def calibrated(
    gt: GroundTruth,
    detections: Path,
    train: tuple[Path, Path],
    iou: str,
    old: PerImage,
    fixed: PerClass,
) -> tuple[dict[str, dict[str, float]], dict[str, Any], dict[str, Any]]:
    """Metrics and samples by condition, and an example.

    The detections are the best of each class by the detector's own score; "identity" keeps it.
    """
    labelling = Labelling(iou, IOU_THRESHOLD, fixed.limit)
    pair = load_best(gt, detections, labelling)
    _, learned = load_samples(*train, labelling)
    require_same_classes(learned, gt.categories)
    judge = Judge(pair, IOU_THRESHOLD)
    measures, samples, example = {}, {}, {}
    for source, labelled in (("train", learned), ("oracle", judge.samples)):
        trial = Trained(judge, labelled)
        for method in (IDENTITY, *SHOWN):
            score = trial.scores(Recipe.of(method), pair.results.ranking)
            after = pair.with_scores(score)
            result, condition = trial.evaluate(after), f"{source}:{method}"
            measures[condition] = {
                **{f"pool.{name}": value for name, value in result.pool.items()},
                **{f"fixed.{name}": value for name, value in result.fixed.items()},
                "ece": result.errors.overall.expected,
            }
            if metrics := claimed(condition):
                samples[condition] = resampled(after, old, fixed, metrics)
            if (source, method) == ("train", _SHOWN_BEFORE_AND_AFTER):
                example = calibration_example(pair, score)
    return measures, samples, example
