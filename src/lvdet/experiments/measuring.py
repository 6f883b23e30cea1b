"""What is measured of a detector: numbers by condition and metric, from one match per file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from lvdet.calibration.calibrate import SHOWN, calibrate
from lvdet.comparison.bootstrap import Resampler, draw
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import Plan, evaluate_pair
from lvdet.evaluation.score_levels import SHARES, score_levels
from lvdet.evaluation.summary import NAMES, PROTOCOLS
from lvdet.experiments.conditions import (
    CALIBRATION,
    LIMITS,
    OWN,
    SCORES,
    part_of,
)
from lvdet.experiments.examples import calibration_example, reranking_example
from lvdet.experiments.scale import Scale
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.limits.needs import everything
from lvdet.matching.match_options import MatchOptions
from lvdet.studies.budget_tables import BudgetTable
from lvdet.studies.sweep import sweep_pair
from lvdet.tables.ground_truth import GroundTruth

#: Numbers by condition and metric; None where undefined.
Measures: TypeAlias = dict[str, dict[str, float | None]]
#: Bootstrap samples of the images, the same for all runs of a scale.
RESAMPLES, RESAMPLES_SEED = 200, 0
#: Metrics of a run's own condition, in the order in which samples have them.
RESAMPLED = tuple(f"{protocol}.{name}" for protocol in PROTOCOLS for name in NAMES)


@dataclass(frozen=True)
class Predicted:
    """Annotations, and the files of detections.

    val:   by threshold of suppression, that of the config first
    train: of the training images, where calibration is measured
    """

    val_annotations: Path
    val: Mapping[float, Path]
    train_annotations: Path
    train: Path | None


def measure(
    predicted: Predicted, scale: Scale, parts: Sequence[str], conditions: Iterable[str]
) -> dict[str, Any]:
    """All that is kept of a run: "measures", "classes", "resamples" and "examples".

    conditions: those of limits that experiments look at
    """
    iou = "segm" if scale.predict.masks else "bbox"
    plan = Plan(dets_per_image=scale.dets_per_image, dets_per_class=scale.dets_per_class)
    (nms, first), *others = predicted.val.items()
    whole = LIMITS in parts or CALIBRATION in parts  # examples show boxes of any rows
    needs = None if whole else everything
    pair = load_pair(predicted.val_annotations, first, needs, MatchOptions(iou))
    evaluation = evaluate_pair(pair, plan)
    fixed = PerClass(scale.dets_per_class)
    measures: Measures = {OWN: _own(evaluation), SCORES: _scores(pair, fixed)}
    examples: dict[str, Any] = {}
    if others:
        measures[f"nms={nms:g}"] = measures[OWN]
        for threshold, path in others:
            another = load_pair(pair.gt, path, plan.needs, MatchOptions(iou))
            measures[f"nms={threshold:g}"] = _own(evaluate_pair(another, plan))
    if LIMITS in parts:
        measures |= _limits(pair, scale, conditions)
        examples["teaser"] = reranking_example(pair, PerImage(scale.dets_per_image), fixed)
    if CALIBRATION in parts:
        assert predicted.train is not None
        train = predicted.train_annotations, predicted.train
        measures |= _calibrated(pair.gt, first, train, scale.dets_per_class, iou)
        examples["calibrated"] = calibration_example(pair, train, scale.dets_per_class)
    return {
        "measures": measures,
        "classes": _classes(evaluation),
        "resamples": _resampled(pair, PerImage(scale.dets_per_image), fixed),
        "examples": examples,
    }


def _own(evaluation: Evaluation) -> dict[str, float | None]:
    return {
        f"{protocol}.{metric}": rounded(value)
        for protocol, found in evaluation.items()
        for metric, value in found.items()
    }


def _scores(pair: Pair, budget: PerClass) -> dict[str, float | None]:
    """Mean and quantiles of each group's scores, the mean of frequent classes being 1."""
    found: dict[str, float | None] = {}
    for group, level in score_levels(pair, budget).levels.items():
        found |= {f"{group}.count": level.count, f"{group}.mean": rounded(level.mean)}
        for share, value in zip(SHARES, level.quantiles, strict=True):
            found[f"{group}.{share:g}"] = rounded(value)
    return found


def _limits(pair: Pair, scale: Scale, conditions: Iterable[str]) -> Measures:
    wanted = sorted(one for one in conditions if part_of(one) == LIMITS)
    groups = pair.gt.categories.groups()
    wanted = [one for one in wanted if groups or "classes" not in one]
    table = BudgetTable("limits", "", tuple(scale.limits(one) for one in wanted))
    return {
        condition: {name: rounded(value) for name, value in row.metrics.items()}
        | {f"pool.{name}": rounded(value) for name, value in row.pool.items()}
        | {
            "class_count": row.class_count,
            "instances_per_class": rounded(row.instances_per_class),
        }
        for condition, row in zip(wanted, sweep_pair(pair, [table]).rows, strict=True)
    }


def _calibrated(
    gt: GroundTruth, path: Path, train: tuple[Path, Path], dets_per_class: int, iou: str
) -> Measures:
    table = calibrate(gt, path, train=train, methods=SHOWN, iou=iou, dets_per_class=dets_per_class)
    found: Measures = {}
    for block in table.blocks:
        for method, row in block.rows.items():
            found[f"{block.name}:{method}"] = {
                **{f"pool.{name}": rounded(value) for name, value in row.pool.items()},
                **{f"fixed.{name}": rounded(value) for name, value in row.fixed.items()},
                "ece": rounded(row.errors.overall.expected),
            }
    return found


def _classes(evaluation: Evaluation) -> dict[str, list[Any]]:
    """Columns with a row per class."""
    table = evaluation.per_class
    return {
        "id": table["id"].tolist(),
        "frequency": table["frequency"].tolist(),
        "instances": table["instances"].tolist(),
        "old": [rounded(value, 4) for value in table["old.AP"].tolist()],
        "fixed": [rounded(value, 4) for value in table["fixed.AP"].tolist()],
    }


def _resampled(pair: Pair, old: PerImage, fixed: PerClass) -> dict[str, Any]:
    """The numbers of bootstrap samples of the images: what two runs differ by on the same samples
    has the errors that `lvdet compare` gives, without their detections."""
    weights = draw(len(pair.gt.images), 0, RESAMPLES, seed=RESAMPLES_SEED)
    drawn = Resampler(pair, old=old, fixed=fixed).values(weights)
    metrics = drawn.metrics(pair.gt.categories).reshape(-1, len(RESAMPLED))[:RESAMPLES]
    return {
        name: [rounded(value, 5) for value in column]
        for name, column in zip(RESAMPLED, metrics.T.tolist(), strict=True)
        if not np.isnan(column).all()
    }


def rounded(value: float, digits: int = 6) -> float | None:
    """A number for a file, None where undefined."""
    return None if math.isnan(value) else round(value, digits)
