"""The result of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import __version__
from lvdet.evaluation.agnostic_recall import AgnosticRecall, recall_layout
from lvdet.evaluation.average_precision import Curves
from lvdet.evaluation.pair import headline
from lvdet.evaluation.summary import defined, number_name
from lvdet.evaluation.ties import TieRange
from lvdet.rendering.csv_text import csv_text
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, percent, plain, text
from lvdet.tables.categories import Categories

#: The version of what `to_dict` gives; it rises where a key changes its meaning or goes away.
SCHEMA = 1


@dataclass(frozen=True, eq=False, repr=False)
class ProtocolResult(Mapping[str, float]):
    """The metrics of one protocol, fractions in [0, 1], NaN where undefined.

    By key or attribute: result["fixed"]["APr"], result["fixed"].APr. `ties` is the range of AP over
    all orders of equal scores.
    """

    name: str
    budget: str
    metrics: dict[str, float]
    curves: Curves | None
    ties: TieRange

    @property
    def heading(self) -> str:
        """The column heading, above the budget."""
        return "AP" if self.name == self.budget else number_name(self.name)

    def __getitem__(self, key: str) -> float:
        return self.metrics[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __getattr__(self, name: str) -> float:
        metrics: dict[str, float] = self.__dict__.get(
            "metrics", {}
        )  # not there yet while being unpickled
        if name not in metrics:
            raise AttributeError(f"no metric {name!r}, expected one of {', '.join(metrics)}")
        return metrics[name]

    def __repr__(self) -> str:
        return f"ProtocolResult({self.name}, {self.budget}, AP {percent(self.metrics['AP'])})"

    def to_dict(self) -> dict[str, Any]:
        """The budget, the metrics, and the range of AP over orders of equal scores; None where
        undefined."""
        ties = {"tie_low": self.ties.low, "tie_high": self.ties.high}
        return {"budget": self.budget} | defined(self.metrics) | defined(ties)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Result, Mapping[str, ProtocolResult]):
    """The result of `evaluate`: one `ProtocolResult` per protocol, by name.

    thresholds: [T] float64, IoU thresholds
    truth: [C] int64, ground truth of each class
    selected: rows of the classes evaluated
    like: the preset and what it stands for; None for none
    agnostic_recall: class-agnostic recall at each requested limit
    """

    protocols: dict[str, ProtocolResult]
    iou: str
    thresholds: NDArray[np.float64]
    categories: Categories
    truth: NDArray[np.int64]
    selected: NDArray[np.int64]
    inputs: dict[str, Any]
    warnings: list[str]
    like: dict[str, Any] | None = None
    agnostic_recall: list[AgnosticRecall] = field(default_factory=list)

    def __getitem__(self, key: str) -> ProtocolResult:
        return self.protocols[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.protocols)

    def __len__(self) -> int:
        return len(self.protocols)

    @property
    def per_class(self) -> dict[str, NDArray[Any]]:
        """Columns with one row per evaluated class: id, name, frequency, instances, and AP, AP50,
        AP75, APs, APm, APl and AR of each protocol that has them ("old.AP", …)."""
        rows = self.selected
        table: dict[str, NDArray[Any]] = {
            "id": self.categories.ids[rows],
            "name": np.array([self.categories.names[row] for row in rows], dtype=np.str_),
            "frequency": self.categories.frequency[rows],
            "instances": self.truth[rows],
        }
        for name, result in self.protocols.items():
            if result.curves is None:
                continue
            precision = result.curves.precision[rows]
            table[f"{name}.AP"] = precision[:, 0].mean(axis=1)
            for level in (50, 75):
                at = self._threshold(level / 100)
                if at is not None:
                    table[f"{name}.AP{level}"] = precision[:, 0, at]
            for place, area in enumerate("sml", start=1):
                table[f"{name}.AP{area}"] = precision[:, place].mean(axis=1)
            table[f"{name}.AR"] = result.curves.recall[rows][:, 0].mean(axis=1)
        return table

    def _threshold(self, level: float) -> int | None:
        places = np.flatnonzero(np.isclose(self.thresholds, level, rtol=0, atol=1e-9))
        return int(places[0]) if len(places) else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `lvdet evaluate --output` writes them."""
        return {
            "lvdet": __version__,
            "schema": SCHEMA,
            "protocols": {name: result.to_dict() for name, result in self.protocols.items()},
            **(
                {"agnostic_recall": [recall.to_dict() for recall in self.agnostic_recall]}
                if self.agnostic_recall
                else {}
            ),
            **({} if self.like is None else {"like": self.like}),
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was evaluated, on one line."""
        return headline(self.inputs)

    def notes(self) -> list[str]:
        """What a preset stands for."""
        return [] if self.like is None else ["\n".join(self.like["notes"])]

    def layouts(self) -> list[Layout]:
        """The table of protocols, with their budgets in the head, and the table of recall."""
        recall = self.recall_layouts()
        if not self.protocols:
            return recall
        names, budgets, *rows = self.table()
        head = [
            f"{name}, {budget}" if name else "" for name, budget in zip(names, budgets, strict=True)
        ]
        title = "The protocols, in percent"
        lines = [[Cell(cell) for cell in row] for row in rows]
        return [Layout("protocols", title, head, lines), *recall]

    def recall_layouts(self) -> list[Layout]:
        """The table of class-agnostic recall, if it was requested."""
        return [recall_layout(self.agnostic_recall)] if self.agnostic_recall else []

    def to_csv(self) -> str:
        """One line per evaluated class, as in `per_class`; empty cells are undefined."""
        table = self.per_class
        rows = zip(*(column.tolist() for column in table.values()), strict=True)
        return csv_text([table, *rows])

    def __repr__(self) -> str:
        numbers = (f"{name} {percent(one.AP)}" for name, one in self.protocols.items())
        recalls = (f"{one.budget} {percent(one.AR)}" for one in self.agnostic_recall)
        shown = [f"AP {', '.join(numbers)}"] if self.protocols else []
        shown += [f"AR {', '.join(recalls)}"] if self.agnostic_recall else []
        return f"Evaluation({plain(self.title())}; {'; '.join(shown)})"

    def table(self) -> list[list[str]]:
        """The table for readers, in percent: protocols, their budgets, then one row per metric."""
        results = self.protocols.values()
        rows = [
            ["", *(result.heading for result in results)],
            ["", *(result.budget for result in results)],
        ]
        for key in dict.fromkeys(key for result in results for key in result):
            values = [result.metrics.get(key) for result in results]
            if key == "AP" or any(value is not None and value == value for value in values):
                rows.append([key, *(percent(value) for value in values)])
        return rows

    def __str__(self) -> str:
        rows = self.table() if self.protocols else []
        widths = [
            max(len(row[column]) for row in rows) for column in range(len(rows[0]) if rows else 0)
        ]
        lines = [
            "  ".join(
                cell.rjust(width) if place else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        if self.agnostic_recall:
            lines += ["", text([replace(one, name="") for one in self.recall_layouts()])]
        notes = [f"\n{note}" for note in self.notes()]
        return "\n".join([self.title(), *lines, *notes])
