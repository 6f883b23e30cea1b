"""How well calibrated a detector is."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import Any

import numpy as np

from lvdet.calibration.detection_errors import (
    DECE_IOU_THRESHOLD,
    DetectionError,
    errors_layout,
)
from lvdet.calibration.labelled_scores import Labelling, Samples, samples_of
from lvdet.calibration.localised_errors import localised_errors
from lvdet.calibration.located import level, require_level
from lvdet.calibration.reliability import (
    BINS,
    CalibrationErrors,
    Reliability,
    ReliabilityCurve,
    reliability,
    reliability_curve,
)
from lvdet.calibration.thresholds import Thresholds, budget_of, class_thresholds
from lvdet.evaluation.input_warnings import reading_warnings
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import Pair, headline
from lvdet.evaluation.summary import defined
from lvdet.files.progress import Progress
from lvdet.limits.budgets import PerClass, PerImage, apply
from lvdet.limits.needs import Need, everything
from lvdet.matching.match_options import MatchOptions
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, percent
from lvdet.tables.categories import FREQUENCY_NAMES
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows

_HEAD = ("", "detections", "ECE", "MCE", "adaptive", "Brier", "log loss")


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Result):
    """Calibration errors over all detections, by frequency group and by class, with their inputs.

    samples: scores and labels, for custom curves (`curve`)
    measures: ECE, LaECE, LaACE and D-ECE, each with its conditions
    """

    errors: Reliability
    samples: Samples
    measures: list[DetectionError]
    inputs: dict[str, Any]
    warnings: list[str]

    def curve(self, *, bins: int = BINS, equal: str = "width") -> ReliabilityCurve:
        """Mean score and share of correct detections, in bins of equal "width" or equal "count"."""
        return reliability_curve(self.samples.score, self.samples.right, bins=bins, equal=equal)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        categories = self.samples.categories
        return {
            "all": defined(asdict(self.errors.overall)),
            "by_frequency": {
                name: defined(asdict(errors)) for name, errors in self.errors.by_frequency.items()
            },
            "by_class": [
                {"id": number, "name": name, **defined(asdict(errors))}
                for number, name, errors in zip(
                    categories.ids.tolist(), categories.names, self.errors.by_class, strict=True
                )
            ],
            "measures": [error.to_dict(categories) for error in self.measures],
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was measured, on one line."""
        return (
            f"{headline(self.inputs)}; {len(self.samples):,} detections counted, correct at IoU "
            f"{self.inputs['iou_threshold']:g}"
        )

    def layouts(self) -> list[Layout]:
        """The errors overall and by frequency group, and those defined by other projects."""
        lines = {"all": self.errors.overall} | {
            FREQUENCY_NAMES[name]: errors for name, errors in self.errors.by_frequency.items()
        }
        return [
            Layout(
                "",
                "Calibration errors (ECE, MCE and adaptive in percent)",
                list(_HEAD),
                [_line(*it) for it in lines.items()],
            ),
            errors_layout(self.measures),
        ]


@dataclass(frozen=True)
class Localised:
    """The conditions of LaECE, LaACE and D-ECE.

    iou_threshold:  at which LaECE and LaACE match detections; 0 for any overlap
    dets_per_image: limit per image; None for LVIS's 300 per image or COCO's 100 per image and class
    thresholds:     scores below these are dropped before the limit; None for none
    """

    iou_threshold: float = 0.0
    dets_per_image: int | None = None
    thresholds: Thresholds | str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        require_level(self.iou_threshold)
        if self.dets_per_image is not None:
            PerImage(self.dets_per_image)

    def needs(self, gt: GroundTruth) -> list[Need]:
        """The part of a results file that is needed: all of it if thresholds come first."""
        if self.thresholds is not None:
            return everything(gt)
        return [Need(budget_of(gt, self.dets_per_image), np.arange(len(gt.categories)))]


def measure(
    gt: Annotations,
    detections: ResultSource,
    labelling: Labelling,
    localised: Localised,
    progress: Progress | None = None,
) -> Measurement:
    """Measures how far scores are from the share of correct detections: expected, maximum and
    adaptive calibration error, Brier score and log loss, overall, by frequency group and by class;
    and LaECE, LaACE and D-ECE, from the same match."""
    best = PerClass(labelling.dets_per_class)
    at = level(localised.iou_threshold)
    pair = load_pair(
        gt,
        detections,
        lambda truth: [Need(best, np.arange(len(truth.categories))), *localised.needs(truth)],
        MatchOptions(
            labelling.iou,
            sorted({at, DECE_IOU_THRESHOLD, labelling.iou_threshold}),
            partners_at=at,
        ),
        progress=progress,
    )
    others = _localised_errors(pair, localised)  # first: it is the match of all
    keep = pair.kept([best])
    samples = samples_of(pair if keep is None else pair.where(keep), labelling.iou_threshold)
    errors = reliability(samples)
    ece = DetectionError(
        "ECE",
        BINS,
        float(labelling.iou_threshold),
        str(best),
        None,
        "",
        len(samples),
        errors.overall.expected,
        {name: group.expected for name, group in errors.by_frequency.items()},
    )
    return Measurement(
        errors,
        samples,
        [ece, *others],
        pair.facts() | asdict(replace(labelling, iou=pair.iou)),
        reading_warnings(pair),
    )


def _localised_errors(pair: Pair, localised: Localised) -> list[DetectionError]:
    budget = budget_of(pair.gt, localised.dets_per_image)
    ranking = pair.results.ranking
    members = pair.counted_classes(pair.every_class)
    among = None if members is None else members[ranking.category]
    source = ""
    if localised.thresholds is not None:
        lowest, source = class_thresholds(localised.thresholds, pair.gt.categories)
        rows = category_rows(pair.gt, ranking)[ranking.category]
        above = (rows < 0) | (ranking.score >= lowest[rows])
        among = above if among is None else among & above
    keep = apply([budget], ranking, among=among)
    return localised_errors(
        pair, float(localised.iou_threshold), keep, budget=str(budget), thresholds=source
    )


def _line(name: str, errors: CalibrationErrors) -> list[Cell]:
    gaps = (errors.expected, errors.maximum, errors.adaptive)
    losses = (errors.brier, errors.log_loss)
    return [
        Cell(name),
        Cell(f"{errors.count:,}"),
        *(Cell(percent(value)) for value in gaps),
        *(Cell("–" if isnan(value) else f"{value:.4f}") for value in losses),
    ]
