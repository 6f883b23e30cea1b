"""One score threshold per class, chosen for the lowest LRP error."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.detection_errors import class_mean
from lvdet.calibration.located import level, located, require_level
from lvdet.calibration.maps import Floats
from lvdet.calibration.optimal_lrp import COMPONENTS, OptimalLrp, optimal_lrp
from lvdet.calibration.threshold_file import KEY, VERSION, read_values
from lvdet.evaluation.input_warnings import reading_warnings
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import headline
from lvdet.evaluation.protocols import old_budget
from lvdet.evaluation.summary import defined
from lvdet.files.progress import Progress
from lvdet.limits.budgets import Budget, PerImage
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.rendering.csv_text import csv_text
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, latex, markdown, percent
from lvdet.tables.categories import FREQUENCY_NAMES, Categories
from lvdet.tables.ground_truth import GroundTruth

#: Where LRP matches detections by default.
IOU_THRESHOLD = 0.5
_TITLE = "The lowest LRP error, mean over classes, in percent"


@dataclass(frozen=True, eq=False, repr=False)
class Thresholds(Result):
    """For each class, the threshold with the lowest LRP error, and that error.

    lrp: [C] columns, in the order of `categories`; objects: [C] int64, objects of each class
    """

    categories: Categories
    objects: NDArray[np.int64]
    lrp: OptimalLrp
    inputs: dict[str, Any]
    warnings: list[str]

    ENDINGS = (".json", ".csv", ".md", ".tex")

    @property
    def by_class(self) -> dict[int, float]:
        """The threshold by class id; NaN if there is none."""
        return dict(zip(self.categories.ids.tolist(), self.lrp.threshold.tolist(), strict=True))

    def means(self) -> dict[str, dict[str, float]]:
        """Error and components, overall and by frequency group: means over the classes for which
        they are defined."""
        groups = {"all": np.arange(len(self.categories)), **self.categories.groups()}
        return {
            name: {
                column: class_mean(values, rows) for column, values in self.lrp.components().items()
            }
            for name, rows in groups.items()
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row per class: id, name, frequency, threshold, oLRP and its components (NaN if
        undefined), objects, and detections at or above the threshold."""
        categories = self.categories
        columns: dict[str, list[Any]] = {
            "id": categories.ids.tolist(),
            "name": list(categories.names),
            "frequency": categories.frequency.tolist(),
            "threshold": self.lrp.threshold.tolist(),
            **{name: values.tolist() for name, values in self.lrp.components().items()},
            "objects": self.objects.tolist(),
            "detections": self.lrp.kept.astype(np.int64).tolist(),
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        return {
            KEY: VERSION,
            "mean": {name: defined(values) for name, values in self.means().items()},
            "classes": [
                {name: None if value != value else value for name, value in row.items()}
                for row in self.rows()
            ],
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was computed, on one line."""
        at = self.inputs["iou_threshold"]
        chosen = int((~np.isnan(self.lrp.threshold)).sum())
        return (
            f"{headline(self.inputs)}; thresholds for {chosen:,}, {self.inputs['budget']}, correct "
            f"at {f'IoU {at:g}' if at else 'any overlap'}"
        )

    def layouts(self) -> list[Layout]:
        """The means, overall and by frequency group."""
        lines = [
            [Cell(FREQUENCY_NAMES.get(name, name)), *(Cell(percent(v)) for v in values.values())]
            for name, values in self.means().items()
        ]
        return [Layout("", _TITLE, ["", *_HEAD], lines)]

    def class_layout(self) -> Layout:
        """The table of classes."""
        return Layout(
            "thresholds",
            "Score thresholds of classes, errors in percent",
            ["id", "name", "threshold", *_HEAD, "objects"],
            [
                [
                    Cell(str(row["id"])),
                    Cell(row["name"]),
                    Cell("–" if isnan(row["threshold"]) else f"{row['threshold']:.4f}"),
                    *(Cell(percent(row[name])) for name in COMPONENTS),
                    Cell(f"{row['objects']:,}"),
                ]
                for row in self.rows()
            ],
        )

    def to_markdown(self) -> str:
        """The means and the table of classes."""
        return markdown([*self.layouts(), self.class_layout()])

    def to_latex(self) -> str:
        """The means and the table of classes."""
        means = replace(self.layouts()[0], name="lrp")
        return latex([means, self.class_layout()])

    def to_csv(self) -> str:
        """One line per class; empty cells are undefined."""
        rows = self.rows()
        return csv_text([*rows[:1], *(row.values() for row in rows)])


_HEAD = ("oLRP", "localisation", "false positives", "false negatives")


def find_thresholds(
    gt: Annotations,
    detections: ResultSource,
    *,
    iou: str | None = None,
    iou_threshold: float = IOU_THRESHOLD,
    dets_per_image: int | None = None,
    progress: Progress | None = None,
) -> Thresholds:
    """Finds the score threshold of each class at which its LRP error is lowest (optimal LRP).

    gt, detections: tables or paths, as for `evaluate`; iou: "bbox", "segm" or "boundary"
    iou_threshold: at which detections are correct; 0 means any overlap
    dets_per_image: limit per image, instead of LVIS's 300 per image or COCO's 100 per image and
        class
    """
    require_level(iou_threshold)
    at = level(iou_threshold)

    def needs(truth: GroundTruth) -> list[Need]:
        budget = budget_of(truth, dets_per_image)
        return [Need(budget, np.arange(len(truth.categories)))]

    options = MatchOptions(iou, [at], partners_at=at)
    pair = load_pair(gt, detections, needs, options, progress=progress)
    budget = budget_of(pair.gt, dets_per_image)
    rows = located(pair, iou_threshold, pair.kept([budget]))
    facts = {"iou_threshold": float(iou_threshold), "budget": str(budget)}
    return Thresholds(
        pair.gt.categories,
        rows.objects,
        optimal_lrp(rows, float(iou_threshold)),
        pair.facts() | facts,
        reading_warnings(pair),
    )


def budget_of(gt: GroundTruth, dets_per_image: int | None) -> Budget:
    """The budget customary for the type of annotations."""
    return old_budget(gt.federated) if dets_per_image is None else PerImage(dets_per_image)


def class_thresholds(
    source: Thresholds | str | os.PathLike[str], categories: Categories
) -> tuple[Floats, str]:
    """[C] the lowest score kept for each class, −∞ without a threshold, from the result of
    `find_thresholds` or its file; and the source's name."""
    if isinstance(source, Thresholds):
        values, name = source.by_class, f"thresholds of {source.inputs['detections']}"
    else:
        values, name = read_values(source), os.fspath(source)
    lowest = [values.get(number, np.nan) for number in categories.ids.tolist()]
    found: Floats = np.nan_to_num(np.array(lowest, dtype=np.float64), nan=-np.inf)
    return found, name
