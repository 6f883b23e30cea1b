"""The result of a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lvdet.comparison.differences import Difference
from lvdet.comparison.verdicts import interval_text, level_text, title
from lvdet.rendering.csv_text import csv_text
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, latex, markdown, percent, plain, signed

#: Classes that tables show, unless another number is requested.
CLASSES_SHOWN = 10
_COLUMNS = ("baseline", "value", "delta", "error", "low", "high", "holds")


@dataclass(frozen=True)
class ClassDifference:
    """One class, for both detectors.

    objects, images: number of objects to find, and of images that have them
    old, fixed: AP under AP-Old and AP-Fixed
    tested: whether enough images have objects to judge this class alone
    holds: whether the difference under AP-Fixed is significant after the Benjamini-Hochberg
        correction; the interval is not corrected
    """

    id: int
    name: str
    frequency: str
    objects: int
    images: int
    old: Difference
    fixed: Difference
    tested: bool
    holds: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        p_value = self.fixed.p_value
        return {
            "id": self.id,
            "name": self.name,
            "frequency": self.frequency,
            "objects": self.objects,
            "images": self.images,
            "old": self.old.to_dict(),
            "fixed": self.fixed.to_dict(),
            "tested": self.tested,
            "p_value": None if math.isnan(p_value) or not self.tested else p_value,
            "holds": self.holds if self.tested else None,
        }


@dataclass(frozen=True, eq=False)
class Compared:
    """One detector compared with the baseline.

    protocols: {"old": {"AP": …, "APr": …, "APc": …, "APf": …}, "fixed": …, "pool": …}
    old_beyond_fixed: the difference in AP under AP-Old (`value`) compared with that under AP-Fixed
    classes: those with objects, in the order of the annotations
    verdicts: the conclusions, in sentences
    """

    name: str
    protocols: dict[str, dict[str, Difference]]
    old_beyond_fixed: Difference
    classes: list[ClassDifference]
    verdicts: list[str]

    def most_different(self, count: int) -> list[ClassDifference]:
        """The tested classes whose difference under AP-Fixed is least likely to be chance."""
        tested = [one for one in self.classes if one.tested and one.fixed.delta != 0]
        return sorted(tested, key=lambda one: (one.fixed.p_value, -abs(one.fixed.delta)))[:count]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        return {
            "detector": self.name,
            "protocols": {
                protocol: {name: item.to_dict() for name, item in metrics.items()}
                for protocol, metrics in self.protocols.items()
            },
            "old_beyond_fixed": self.old_beyond_fixed.to_dict(),
            "classes": [one.to_dict() for one in self.classes],
            "verdicts": self.verdicts,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """The result of `compare`: each detector compared with the first one, the baseline.

    budgets: the budget of each protocol, as printed beside numbers
    compared: a `Compared` for each detector but the baseline
    resamples, confidence, seed: how the intervals were computed
    classes_shown: how many classes the tables list
    """

    baseline: str
    budgets: dict[str, str]
    compared: list[Compared]
    resamples: int
    confidence: float
    seed: int
    inputs: dict[str, Any]
    warnings: list[str]
    classes_shown: int = CLASSES_SHOWN
    ENDINGS = (".json", ".csv", ".md", ".tex")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all detectors, the baseline first."""
        return (self.baseline, *(one.name for one in self.compared))

    @property
    def verdicts(self) -> list[str]:
        """The conclusions, in sentences."""
        return [text for one in self.compared for text in one.verdicts]

    @property
    def regressions(self) -> list[str]:
        """The detectors that are significantly worse than the baseline in AP, in sentences."""
        return [
            f"{one.name} is worse than {self.baseline} by {percent(-found['AP'].delta)} in "
            f"{title(protocol)}"
            for one in self.compared
            for protocol, found in one.protocols.items()
            if found["AP"].holds and found["AP"].delta < 0
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `lvdet compare --output FILE.json` writes them."""
        return {
            "baseline": self.baseline,
            "budgets": self.budgets,
            "comparisons": [one.to_dict() for one in self.compared],
            "resamples": self.resamples,
            "confidence": self.confidence,
            "seed": self.seed,
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was compared, on one line."""
        runs = self.inputs.get("runs", 1)
        of_each = f", {runs} runs of each," if runs > 1 else ""
        return (
            f"{self.inputs['iou']}: {len(self.names)} detectors{of_each} on "
            f"{self.inputs['images']:,} "
            f"images, {self.inputs['classes']:,} classes; {self.resamples:,} bootstrap "
            "samples"
        )

    def layouts(self, *, digits: int = 2, labelled: bool = False) -> list[Layout]:
        """The tables for readers, in percent: for each detector the metrics, and the classes that
        differ most. Tables get names to refer to if they are `labelled`."""
        found = []
        for number, one in enumerate(self.compared, start=1):
            label = f"compare-{number}" if labelled else ""
            found.append(self._metrics(one, label, digits))
            shown = one.most_different(self.classes_shown)
            if shown:
                found.append(self._classes(one, shown, f"{label}-classes" if label else "", digits))
        return found

    def notes(self) -> list[str]:
        """The verdicts."""
        return ["\n".join(self.verdicts)]

    def to_markdown(self) -> str:
        """The tables and verdicts, for a page of text."""
        lines = "\n".join(f"- {_unmarked(sentence)}" for sentence in self.verdicts)
        return f"{markdown(self.layouts())}\n{lines}\n"

    def to_latex(self) -> str:
        """The tables for a paper, in the style of booktabs, with one decimal."""
        return latex(self.layouts(digits=1, labelled=True))

    def to_csv(self) -> str:
        """One line per metric and per class; empty cells are undefined."""
        head = ["detector", "protocol", "budget", "metric", "class", *_COLUMNS, "p_value"]
        return csv_text([head, *self._csv_rows()])

    def _csv_rows(self) -> Iterator[list[object]]:
        for one in self.compared:
            for protocol, metrics in one.protocols.items():
                start = [one.name, protocol, self.budgets[protocol]]
                for name, item in metrics.items():
                    yield [*start, name, "", *_cells(item.to_dict()), ""]
                for row in one.classes if protocol != "pool" else []:
                    item = row.old if protocol == "old" else row.fixed
                    values = item.to_dict()
                    p_value = ""
                    if protocol == "fixed":
                        values["holds"] = row.holds if row.tested else None
                        p_value = str(item.p_value) if row.tested else ""
                    yield [*start, "AP", row.name, *_cells(values), p_value]

    def _metrics(self, one: Compared, label: str, digits: int) -> Layout:
        lines = []
        for protocol, metrics in one.protocols.items():
            for name, item in metrics.items():
                if name != "AP" and math.isnan(item.delta):
                    continue
                first = name == "AP"
                lines.append(
                    [
                        Cell(title(protocol) if first else ""),
                        Cell(self.budgets[protocol] if first else ""),
                        Cell(name),
                        *_numbers(item, digits),
                        Cell(_mark(item.holds, not math.isnan(item.low))),
                    ]
                )
        head = ["", "budget", "", self.baseline, one.name, "difference", self._level(), "holds"]
        return Layout(label, f"{one.name} compared with {self.baseline}", head, lines)

    def _classes(
        self, one: Compared, shown: Sequence[ClassDifference], label: str, digits: int
    ) -> Layout:
        lines = [
            [
                Cell(plain(row.name)),
                Cell(row.frequency),
                Cell(f"{row.images:,}"),
                *_numbers(row.fixed, digits),
                Cell(f"{row.fixed.p_value:.1g}"),
                Cell(_mark(row.holds, row.tested)),
            ]
            for row in shown
        ]
        head = ["class", "", "images", self.baseline, one.name, "difference", self._level()]
        text = f"AP-Fixed ({self.budgets['fixed']}) of the classes that differ most clearly"
        names = f"{one.name} compared with {self.baseline}"
        return Layout(label, f"{text}, {names}", [*head, "p", "holds"], lines)

    def _level(self) -> str:
        return f"{level_text(self.confidence)} interval"


def _numbers(item: Difference, digits: int) -> list[Cell]:
    return [
        Cell(percent(item.baseline, digits)),
        Cell(percent(item.value, digits)),
        Cell(signed(item.delta, digits)),
        Cell(interval_text(item, digits)),
    ]


def _mark(holds: bool, known: bool) -> str:
    return ("yes" if holds else "no") if known else ""


def _cells(values: dict[str, Any]) -> list[Any]:
    cells = [values[name] for name in _COLUMNS]
    return ["" if value is None else str(value).lower() for value in cells]


def _unmarked(sentence: str) -> str:
    return sentence.replace("\\", "\\\\").replace("<", "&lt;").replace("|", r"\|")
