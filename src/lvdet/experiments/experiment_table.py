"""An experiment's table in the paper's layout, beside the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lvdet.experiments.example_tables import example_layouts
from lvdet.experiments.paper_item import Column, Experiment, Row
from lvdet.experiments.result_files import ResultSet
from lvdet.experiments.scale import Scale
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, percent, signed


@dataclass(frozen=True)
class Number:
    """A metric over seeds and the paper's value, in percent or as it is; NaN and None if
    missing."""

    values: tuple[float, ...]
    paper: float | None = None

    @property
    def mean(self) -> float:
        """NaN without values."""
        return float(np.mean(self.values)) if self.values else math.nan

    @property
    def deviation(self) -> float:
        """The standard deviation over seeds, NaN for fewer than two."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else math.nan

    def text(self, count: bool) -> str:
        """The mean, with the standard deviation if there is one."""
        if count:
            return "–" if math.isnan(self.mean) else f"{self.mean:,.4g}"
        spread = "" if math.isnan(self.deviation) else f" ± {percent(self.deviation)}"
        return percent(self.mean) + spread

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        mean, deviation = (
            None if math.isnan(value) else value for value in (self.mean, self.deviation)
        )
        return {"mean": mean, "sd": deviation, "seeds": [*self.values], "paper": self.paper}


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentTable(Result):
    """A table or figure of the paper with the results of a scale."""

    experiment: Experiment
    scale: Scale
    results: ResultSet
    inputs: dict[str, Any]
    warnings: list[str]

    @cached_property
    def numbers(self) -> dict[str, dict[str, list[Number]]]:
        """A number for each column, by config ("": the rows' own) and label."""
        return {
            config: {row.label: self._row(row, config) for row in self.experiment.rows}
            for config in ("", *self.experiment.repeated)
        }

    @property
    def measured(self) -> bool:
        """Whether there are any measurements, or what replaces a table."""
        if self.experiment.example:
            return bool(self.layouts())
        lines = [line for table in self.numbers.values() for line in table.values()]
        return any(number.values for line in lines for number in line)

    def title(self) -> str:
        """The paper's caption and label."""
        return f"{self.experiment.title} ({self.experiment.label}), {self.scale.title}"

    def layouts(self) -> list[Layout]:
        """The tables for readers."""
        one = self.experiment
        if one.example:
            return example_layouts(one, self.results)
        if not one.rows:
            return []
        tables = [self._layout("", one.name, one.title)]
        for config, called in one.repeated.items():
            tables.append(self._layout(config, f"{one.name}-{config}", f"The same for {called}"))
        return tables

    def notes(self) -> list[str]:
        """Notes on experiments without measurements, and on rows that lack detections."""
        cut = sorted({at for config, at in self.experiment.wanted() if self._truncated(config, at)})
        found = [self.experiment.note] if self.experiment.note else []
        if cut:
            found.append(
                f"{', '.join(cut)}: predictions do not hold all detections that the limits allow, "
                "so AP is a lower bound."
            )
        return found

    def _truncated(self, config: str, condition: str) -> bool:
        seeds = self.results.seeds(config, pilots=True)
        return any(self.results.value(config, s, condition, "incomplete") for s in seeds)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        one = self.experiment
        rows = [
            {
                "label": row.label,
                "config": config or row.config,
                "at": row.at,
                "values": {
                    column.head: number.to_dict()
                    for column, number in zip(
                        one.columns, self.numbers[config][row.label], strict=True
                    )
                },
            }
            for config in self.numbers
            for row in one.rows
        ]
        return {
            "experiment": one.name,
            "label": one.label,
            "title": one.title,
            "scale": self.scale.name,
            "rows": [] if one.example else rows,
        }

    def _row(self, row: Row, config: str) -> list[Number]:
        papers = () if config else row.paper
        return [
            Number(
                self._values(config or column.config or row.config, column, row.at),
                papers[place] if place < len(papers) else None,
            )
            for place, column in enumerate(self.experiment.columns)
        ]

    def _values(self, config: str, column: Column, at: str) -> tuple[float, ...]:
        found = []
        for seed in self.results.seeds(config, pilots=True):
            values = [
                self.results.value(config, seed, condition, column.metric)
                for condition in column.conditions(at)
            ]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                found.append(known[0] - sum(known[1:]))
        return tuple(found)

    def _layout(self, config: str, name: str, title: str) -> Layout:
        one, numbers = self.experiment, self.numbers[config]
        quoted = [
            any(line[place].paper is not None for line in numbers.values())
            for place in range(len(one.columns))
        ]
        head = [""]
        for column, paper in zip(one.columns, quoted, strict=True):
            head += [column.head, "paper"] if paper else [column.head]
        lines = [self._line(row, numbers, quoted) for row in one.rows]
        return Layout(name, title, head, lines)

    def _line(
        self, row: Row, numbers: Mapping[str, list[Number]], quoted: Sequence[bool]
    ) -> list[Cell]:
        cells = [Cell(row.label)]
        base = numbers.get(row.against) if row.against != row.label else None
        for place, (column, number) in enumerate(
            zip(self.experiment.columns, numbers[row.label], strict=True)
        ):
            compared = base is not None and not column.count
            delta = signed(number.mean - base[place].mean) if base and compared else ""
            cells.append(Cell(number.text(column.count), delta))
            if quoted[place]:
                cells.append(Cell(_quoted(number.paper, column.count)))
        return cells


def _quoted(paper: float | None, count: bool) -> str:
    """A number as the paper prints it."""
    if paper is None:
        return ""
    return f"{paper:,g}" if count else f"{paper:.1f}"


@dataclass(frozen=True, eq=False, repr=False)
class ExperimentTables(Result):
    """Several experiment tables."""

    tables: list[ExperimentTable]
    scale: Scale
    inputs: dict[str, Any]
    warnings: list[str]

    @classmethod
    def of(
        cls, experiments: Iterable[Experiment], scale: Scale, results: ResultSet
    ) -> ExperimentTables:
        """The tables of experiments, from results at their scale."""
        inputs: dict[str, Any] = {"scale": scale.name, "runs": len(results)}
        tables = [ExperimentTable(one, scale, results, inputs, []) for one in experiments]
        return cls(tables, scale, inputs, [])

    def title(self) -> str:
        """The scale, and the number of runs."""
        return f"scale {self.scale.name}: {self.scale.title}; {self.inputs['runs']:,} runs"

    def layouts(self) -> list[Layout]:
        """All tables."""
        return [layout for table in self.tables for layout in table.layouts()]

    def notes(self) -> list[str]:
        """All notes."""
        return [note for table in self.tables for note in table.notes()]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        return {"inputs": self.inputs, "tables": [table.to_dict() for table in self.tables]}
