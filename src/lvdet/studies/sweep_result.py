"""The result of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lvdet.evaluation.pair import headline
from lvdet.evaluation.summary import NAMES, defined
from lvdet.rendering.csv_text import csv_text
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, latex, percent, plain, signed
from lvdet.studies.budget_tables import BudgetTable


@dataclass(frozen=True, repr=False)
class SweepRow:
    """Some classes under one pair of limits.

    table: the table it belongs to
    dets_per_image, dets_per_class: the limits, None for none
    order: which limit applied first, None unless there are both
    classes: letters of "rcf", "all", or as requested
    class_count, instances_per_class: the number of classes, and their mean number of objects
    metrics, pool: AP, APr, APc, APf as mean over classes, and of AP-Pool; NaN where undefined
    delta, pool_delta: differences from the row it is compared with; None for that row
    incomplete: True if the results were truncated before, and this row would keep more of them
    reranked: True if they were truncated per class before this row's limit per image
    """

    table: str
    dets_per_image: int | None
    dets_per_class: int | None
    order: str | None
    classes: str
    class_count: int
    instances_per_class: float
    metrics: dict[str, float]
    pool: dict[str, float]
    delta: dict[str, float] | None = None
    pool_delta: dict[str, float] | None = None
    incomplete: bool = False
    reranked: bool = False

    def __repr__(self) -> str:
        limits = f"{_budget(self.dets_per_image, 'image')}, {_budget(self.dets_per_class, 'class')}"
        numbers = f"AP {percent(self.metrics['AP'])}, AP-Pool {percent(self.pool['AP'])}"
        return f"SweepRow({plain(self.classes)}, {limits}, {numbers})"

    def against(self, base: SweepRow) -> SweepRow:
        """The row with its deltas."""
        return replace(
            self,
            delta={name: value - base.metrics[name] for name, value in self.metrics.items()},
            pool_delta={name: value - base.pool[name] for name, value in self.pool.items()},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        delta = None
        if self.delta is not None and self.pool_delta is not None:
            delta = defined(self.delta) | {"pool": defined(self.pool_delta)}
        return {
            "table": self.table,
            "dets_per_image": self.dets_per_image,
            "dets_per_class": self.dets_per_class,
            "order": self.order,
            "classes": self.classes,
            "class_count": self.class_count,
            **defined({"instances_per_class": self.instances_per_class}),
            **defined(self.metrics),
            "pool": defined(self.pool),
            "delta": delta,
            "incomplete": self.incomplete,
            "reranked": self.reranked,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Result):
    """The result of `sweep`: rows, table after table.

    tables: the requested tables, by name
    """

    rows: list[SweepRow]
    tables: dict[str, BudgetTable]
    inputs: dict[str, Any]
    warnings: list[str]
    ENDINGS = (".json", ".csv", ".md", ".tex")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `lvdet sweep --output FILE.json` writes them."""
        return {
            "rows": [row.to_dict() for row in self.rows],
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was swept, on one line."""
        return headline(self.inputs)

    def layouts(self, digits: int = 2) -> list[Layout]:
        """The tables for readers, in percent with the given number of decimals."""
        found = []
        for name, table in self.tables.items():
            rows = [row for row in self.rows if row.table == name]
            if table.paired:
                found.append(_paired(table, rows, digits))
            else:
                found += [_listed(table, rows, shown, digits) for shown in table.shows]
        return found

    def to_latex(self) -> str:
        """The tables for a paper, in the style of booktabs, with one decimal."""
        return latex(self.layouts(digits=1))

    def to_csv(self) -> str:
        """One line per row; "inf" means no limit, an empty cell is undefined."""
        rows = [_flat(row.to_dict()) for row in self.rows]
        return csv_text([*rows[:1], *(row.values() for row in rows)])


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    pool, delta = row.pop("pool"), row.pop("delta") or {}
    pool_delta = delta.pop("pool", {})
    for name in ("dets_per_image", "dets_per_class"):
        row[name] = "inf" if row[name] is None else row[name]
    marks = {name: str(row.pop(name)).lower() for name in ("incomplete", "reranked")}
    cells = row | {
        **{f"pool.{name}": pool[name] for name in NAMES},
        **{f"delta.{name}": delta.get(name) for name in NAMES},
        **{f"delta.pool.{name}": pool_delta.get(name) for name in NAMES},
        **marks,
    }
    return {name: "" if value is None else value for name, value in cells.items()}


def _listed(table: BudgetTable, rows: list[SweepRow], shown: str, digits: int) -> Layout:
    """A line for each row, with the columns in which there is something to read; deltas beside
    AP and APr, as in the paper."""
    columns: dict[str, list[Cell]] = {}
    if len({row.classes for row in rows}) > 1 or rows[0].classes not in ("rcf", "all"):
        columns["classes"] = [Cell(row.classes) for row in rows]
    columns["dets/class"] = [Cell(_limit(row.dets_per_class)) for row in rows]
    columns["dets/image"] = [Cell(_limit(row.dets_per_image)) for row in rows]
    if len({row.order for row in rows if row.order}) > 1:
        columns["order"] = [Cell(row.order or "") for row in rows]
    for name in NAMES:
        values = [_metric(row, shown, name) for row in rows]
        if name == "AP" or not all(np.isnan(value) for value, _ in values):
            columns[name] = [
                Cell(
                    percent(value, digits),
                    signed(delta, digits) if name in ("AP", "APr") else "",
                )
                for value, delta in values
            ]
    layout = _layout(table, columns, [_note([row]) for row in rows])
    if len(table.shows) == 1:
        return layout
    kind = "AP-Pool" if shown == "pool" else "AP"
    return replace(layout, name=f"{table.name}-{shown.lower()}", title=f"{kind} {table.title}")


def _paired(table: BudgetTable, rows: list[SweepRow], digits: int) -> Layout:
    """One line per set of classes, with a column per limit."""
    by_classes: dict[str, list[SweepRow]] = {}
    for row in rows:
        by_classes.setdefault(row.classes, []).append(row)
    lines = list(by_classes.values())
    columns = {
        "classes": [Cell(line[0].classes.upper()) for line in lines],
        "number": [Cell(f"{line[0].class_count:,}") for line in lines],
        "objects/class": [Cell(_number(line[0].instances_per_class)) for line in lines],
    }
    for place, first in enumerate(lines[0]):
        columns[f"AP at {_budget(first.dets_per_image, 'image')}"] = [
            Cell(
                percent(line[place].metrics["AP"], digits),
                signed((line[place].delta or {}).get("AP"), digits),
            )
            for line in lines
        ]
    return _layout(table, columns, [_note(line) for line in lines])


def _note(rows: Sequence[SweepRow]) -> str:
    """The effect of truncated results on the numbers of a line, and at which limits, unless at
    all."""
    notes = []
    for word, some in (
        ("incomplete", [row for row in rows if row.incomplete]),
        ("re-ranked", [row for row in rows if row.reranked]),
    ):
        limits = ", ".join(_limit(row.dets_per_image) for row in some)
        if some:
            notes.append(word if len(some) == len(rows) else f"{word} at {limits}")
    return "; ".join(notes)


def _layout(table: BudgetTable, columns: dict[str, list[Cell]], notes: list[str]) -> Layout:
    if any(notes):
        columns["note"] = [Cell(note) for note in notes]
    lines = [list(line) for line in zip(*columns.values(), strict=True)]
    return Layout(table.name, table.title, list(columns), lines)


def _metric(row: SweepRow, shown: str, name: str) -> tuple[float, float | None]:
    values, deltas = (row.pool, row.pool_delta) if shown == "pool" else (row.metrics, row.delta)
    return values[name], None if deltas is None else deltas[name]


def _budget(limit: int | None, unit: str) -> str:
    return f"{'∞' if limit is None else limit}/{unit}"


def _limit(value: int | None) -> str:
    return "∞" if value is None else f"{value:,}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:,.1f}"
