"""Measures a detector: metrics by condition, with one match per file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import Plan, evaluate_pair
from lvdet.evaluation.score_levels import SHARES, score_levels
from lvdet.experiments.calibrating import calibrated
from lvdet.experiments.conditions import CALIBRATION, LIMITS, OWN, SCORES, part_of
from lvdet.experiments.examples import reranking_example
from lvdet.experiments.resampling import claimed, resampled, resampled_limits
from lvdet.experiments.scale import Scale
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.limits.needs import everything
from lvdet.matching.match_options import MatchOptions
from lvdet.studies.budget_tables import BudgetTable, Limits
from lvdet.studies.sweep import sweep_pair

#: Numbers by condition and metric; None where undefined.
Measures: TypeAlias = dict[str, dict[str, float | None]]


@dataclass(frozen=True)
class Predicted:
    """Annotations and files of detections.

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
    """Everything recorded for a run: "measures", "classes", "resamples" and "examples".

    conditions: those of limits that experiments look at
    """
    iou = "segm" if scale.predict.masks else "bbox"
    old, fixed = PerImage(scale.dets_per_image), PerClass(scale.dets_per_class)
    plan = Plan(dets_per_image=old.limit, dets_per_class=fixed.limit)
    (nms, first), *others = predicted.val.items()
    whole = LIMITS in parts  # the example shows boxes of any rows
    needs = None if whole else everything
    pair = load_pair(predicted.val_annotations, first, needs, MatchOptions(iou))
    evaluation = evaluate_pair(pair, plan)
    measures: Measures = {OWN: _own(evaluation), SCORES: _scores(pair, fixed)}
    samples: dict[str, Any] = {OWN: resampled(pair, old, fixed)}
    examples: dict[str, Any] = {}
    if others:
        measures[f"nms={nms:g}"] = measures[OWN]
        samples[f"nms={nms:g}"] = samples[OWN]
        for threshold, path in others:
            condition = f"nms={threshold:g}"
            another = load_pair(pair.gt, path, everything, MatchOptions(iou))
            measures[condition] = _own(evaluate_pair(another, plan))
            if metrics := claimed(condition):
                samples[condition] = resampled(another, old, fixed, metrics)
    if LIMITS in parts:
        rows = {one: scale.limits(one) for one in conditions if part_of(one) == LIMITS}
        measures |= _limits(pair, rows)
        samples |= {at: resampled_limits(pair, row, fixed, claimed(at)) for at, row in rows.items()}
        examples["teaser"] = reranking_example(pair, old, fixed)
    if CALIBRATION in parts:
        assert predicted.train is not None
        train = predicted.train_annotations, predicted.train
        found, drawn, example = calibrated(pair.gt, first, train, iou, old, fixed)
        measures |= {at: _rounded(values) for at, values in found.items()}
        samples |= drawn
        examples["calibrated"] = example
    return {
        "measures": measures,
        "classes": _classes(evaluation),
        "resamples": {condition: columns for condition, columns in samples.items() if columns},
        "examples": examples,
    }


def _own(evaluation: Evaluation) -> dict[str, float | None]:
    return {
        f"{protocol}.{metric}": rounded(value)
        for protocol, found in evaluation.items()
        for metric, value in found.items()
    }


def _scores(pair: Pair, budget: PerClass) -> dict[str, float | None]:
    """Mean and quantiles of each group's scores, relative to the mean of frequent classes."""
    found: dict[str, float | None] = {}
    for group, level in score_levels(pair, budget).levels.items():
        found |= {f"{group}.count": level.count, f"{group}.mean": rounded(level.mean)}
        for share, value in zip(SHARES, level.quantiles, strict=True):
            found[f"{group}.{share:g}"] = rounded(value)
    return found


def _limits(pair: Pair, rows: Mapping[str, Limits]) -> Measures:
    """AP and AP-Pool under limits; "incomplete" if the file lacks detections that they allow."""
    table = BudgetTable("limits", "", tuple(rows.values()))
    return {
        condition: {
            **_rounded(row.metrics),
            **{f"pool.{name}": rounded(value) for name, value in row.pool.items()},
            "class_count": row.class_count,
            "instances_per_class": rounded(row.instances_per_class),
            "incomplete": float(row.incomplete),
        }
        for condition, row in zip(rows, sweep_pair(pair, [table]).rows, strict=True)
    }


def _classes(evaluation: Evaluation) -> dict[str, list[Any]]:
    """Columns with one row per class."""
    table = evaluation.per_class
    return {
        "id": table["id"].tolist(),
        "frequency": table["frequency"].tolist(),
        "instances": table["instances"].tolist(),
        "old": [rounded(value, 4) for value in table["old.AP"].tolist()],
        "fixed": [rounded(value, 4) for value in table["fixed.AP"].tolist()],
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: rounded(value) for name, value in values.items()}


def rounded(value: float, digits: int = 6) -> float | None:
    """A number for a file, None where undefined."""
    return None if math.isnan(value) else round(value, digits)
