"""What calibration does to a detector, as in the paper's table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from lvdet.calibration.reliability import Reliability
from lvdet.evaluation.pair import headline
from lvdet.evaluation.summary import defined
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, compared, latex, percent
from lvdet.tables.description import counted

#: Methods as the paper's table calls them.
TITLES = {
    "identity": "Identity",
    "histogram": "Histogram bin",
    "bbq": "BBQ (AIC)",
    "bbq-bic": "BBQ (BIC)",
    "beta": "Beta calibration",
    "isotonic": "Isotonic reg.",
    "platt": "Platt scaling",
    "temperature": "Temperature",
    "hierarchical": "Hierarchical",
}


@dataclass(frozen=True)
class Calibrated:
    """The metrics obtained with some scores.

    pool, fixed: AP, APr, APc, APf of AP-Pool and AP-Fixed; NaN where undefined
    reordered: classes (rows) in which the order of detections differs from the detector's
    errors: how calibrated the scores are
    """

    pool: dict[str, float]
    fixed: dict[str, float]
    reordered: frozenset[int]
    errors: Reliability

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        groups = self.errors.by_frequency.items()
        return {
            "pool": defined(self.pool),
            "fixed": defined(self.fixed),
            "reordered_classes": len(self.reordered),
            "errors": {
                "all": defined(asdict(self.errors.overall)),
                **{name: defined(asdict(errors)) for name, errors in groups},
            },
        }


@dataclass(frozen=True)
class Block:
    """Methods that were fitted on the same data.

    name:  "train", "folds" or "oracle"
    title: what they were fitted on, in words
    uncalibrated: the detector's own scores, judged in the same way
    rows:  by method
    """

    name: str
    title: str
    uncalibrated: Calibrated
    rows: dict[str, Calibrated]


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationTable(Result):
    """AP-Pool without calibration and with each method, and what happens to AP-Fixed."""

    uncalibrated: Calibrated
    blocks: list[Block]
    budget: str
    inputs: dict[str, Any]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        return {
            "budget": self.budget,
            "uncalibrated": self.uncalibrated.to_dict(),
            "blocks": [
                {
                    "name": block.name,
                    "fitted_on": block.title,
                    "uncalibrated": block.uncalibrated.to_dict(),
                    "rows": [
                        {"method": method, **row.to_dict()} for method, row in block.rows.items()
                    ],
                }
                for block in self.blocks
            ],
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was evaluated, on one line."""
        return headline(self.inputs)

    def layouts(self, *, labelled: bool = False) -> list[Layout]:
        """One table per block, with deltas from the uncalibrated scores. Tables get names to refer
        to if they are `labelled`."""
        return [
            self._layout(block, f"calibration-{block.name}" if labelled else "")
            for block in self.blocks
        ]

    def notes(self) -> list[str]:
        """Where AP-Fixed changed, and why."""
        found = []
        for block in self.blocks:
            moved = [
                f"{TITLES[method]} ({counted(len(row.reordered), 'class', 'classes')})"
                for method, row in block.rows.items()
                if row.reordered
            ]
            if moved:
                found.append(
                    f"{block.title}: the order of detections changed within some classes, and with "
                    f"it AP-Fixed: {', '.join(moved)}."
                )
        return found

    def to_latex(self) -> str:
        """The tables for a paper, in the style of booktabs."""
        return latex(self.layouts(labelled=True))

    def _layout(self, block: Block, name: str) -> Layout:
        rows = {"Uncalibrated": block.uncalibrated} | {
            TITLES[method]: row for method, row in block.rows.items()
        }
        table = compared(
            f"AP-Pool, {self.budget}, {block.title}",
            {name: _line(row) for name, row in rows.items()},
        )
        errors = [Cell(percent(row.errors.overall.expected)) for row in rows.values()]
        return Layout(
            name,
            table.title,
            ["Calibration", *table.head[1:], "ECE"],
            [[*line, error] for line, error in zip(table.lines, errors, strict=True)],
        )


def _line(row: Calibrated) -> dict[str, float]:
    groups = {name: value for name, value in row.pool.items() if name != "AP"}
    return {"AP-Pool": row.pool["AP"], **groups, "AP-Fixed": row.fixed["AP"]}
