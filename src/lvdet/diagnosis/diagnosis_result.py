"""The result of a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.diagnosis.confusions import Confusions
from lvdet.diagnosis.costs import TOTALS
from lvdet.diagnosis.kinds import KINDS, Rows
from lvdet.evaluation.pair import headline
from lvdet.evaluation.summary import defined
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, percent, plain, signed
from lvdet.tables.categories import Categories

#: Confusions in the table that people read, and in the JSON.
SHOWN, WRITTEN = 10, 100
#: The name of the group of all classes.
ALL = "all"


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result):
    """The result of `diagnose`. Groups of classes are "all", the frequency groups, and the
    caller's.

    kinds:   the kinds of errors, then the two totals: keys of `costs` and `counts`
    ap:      AP at IoU `foreground` before any error is fixed, by group; NaN where undefined
    costs:   by kind and group, the gain in AP from fixing that kind alone, as a fraction
    counts:  by kind and group, the number of errors; for missed and false negatives, of objects
    class_ap:     [C] float64, AP of each class; NaN where undefined
    class_costs:  [C, kinds] float64; NaN if there is nothing to find, before or after
    class_counts: [C, kinds] int64
    instances:    [C] int64, objects to be found
    confusions:   pairs of classes in classification errors
    rows:    the kind of each detection, and the object it is judged by
    missed:  rows of `GroundTruth` that were missed
    foreground, background: the IoU from which a detection is correct, and up to which it is
        background
    budget:  in words
    selected: rows of the classes diagnosed
    """

    kinds: tuple[str, ...]
    ap: dict[str, float]
    costs: dict[str, dict[str, float]]
    counts: dict[str, dict[str, int]]
    class_ap: NDArray[np.float64]
    class_costs: NDArray[np.float64]
    class_counts: NDArray[np.int64]
    instances: NDArray[np.int64]
    confusions: Confusions
    rows: Rows
    missed: NDArray[np.int64]
    foreground: float
    background: float
    budget: str
    categories: Categories
    selected: NDArray[np.int64]
    inputs: dict[str, Any]
    warnings: list[str]

    @property
    def metric(self) -> str:
        """The metric that errors reduce: "AP50"."""
        return f"AP{100 * self.foreground:g}"

    @property
    def per_class(self) -> dict[str, NDArray[Any]]:
        """Columns with one row per class: id, name, frequency, instances, AP50, and the count and
        the cost of each kind ("missed", "missed.cost", …)."""
        rows = self.selected
        table: dict[str, NDArray[Any]] = {
            "id": self.categories.ids[rows],
            "name": np.array([self.categories.names[row] for row in rows], dtype=np.str_),
            "frequency": self.categories.frequency[rows],
            "instances": self.instances[rows],
            self.metric: self.class_ap[rows],
        }
        for place, kind in enumerate(self.kinds):
            table[kind] = self.class_counts[rows, place]
            table[f"{kind}.cost"] = self.class_costs[rows, place]
        return table

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the numbers, their inputs, and the warnings."""
        return self.numbers() | {"inputs": self.inputs, "warnings": self.warnings}

    def numbers(self) -> dict[str, Any]:
        """Plain values, as `lvdet evaluate --errors --output` writes them: fractions, None where
        undefined, and the first hundred confusions."""
        parts = {
            name: {"cost": defined(self.costs[name]), "count": self.counts[name]}
            for name in self.kinds
        }
        return {
            "metric": self.metric,
            "budget": self.budget,
            "foreground_iou": self.foreground,
            "background_iou": self.background,
            "before": defined(self.ap),
            "kinds": {name: parts[name] for name in KINDS},
            "totals": {name: parts[name] for name in TOTALS},
            "confusion_pairs": len(self.confusions),
            "confusions": self.confusions.rows(WRITTEN),
        }

    def title(self) -> str:
        """What was diagnosed, on one line."""
        return headline(self.inputs)

    def layouts(self) -> list[Layout]:
        """The tables for readers: kinds of error, and the first ten confusions."""
        return [self._kinds(), *([self._confusions()] if len(self.confusions) else [])]

    def _kinds(self) -> Layout:
        groups = list(self.ap)
        lines = [[Cell(f"{self.metric} before")]]
        lines[0] += [Cell(percent(value)) for value in self.ap.values()]
        lines[0] += [Cell("") for _ in groups]
        for name in self.kinds:
            cost, count = self.costs[name], self.counts[name]
            line = [Cell(name), *(Cell(signed(cost[group]) or "–") for group in groups)]
            lines.append(line + [Cell(f"{count[group]:,}") for group in groups])
        title = (
            f"Errors at IoU {self.foreground:g} and {self.background:g}: cost in points of "
            f"{self.metric} ({self.budget}) and count"
        )
        counts = ["count" if group == ALL else f"in {group}" for group in groups]
        return Layout("", title, ["", *groups, *counts], lines)

    def _confusions(self) -> Layout:
        lines = [
            [
                Cell(plain(row["detected"]["name"])),
                Cell(plain(row["actual"]["name"])),
                Cell(f"{row['count']:,}"),
                Cell(f"{row['highest_score']:.3f}"),
            ]
            for row in self.confusions.rows(SHOWN)
        ]
        title = f"Most frequent confusions, of {len(self.confusions):,}"
        return Layout("", title, ["detected", "actual", "count", "highest score"], lines)
