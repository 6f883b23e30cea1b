"""An experiment: a table or figure of the paper as a small TOML, under its LaTeX label.

    label, title    from the paper
    columns         metrics, each measured under its row's condition
    seeds           the number of runs of each config
    config, against defaults for the rows; without `against`, rows are compared with the first row
    [[rows]]        a shipped config, the condition it is measured under, the paper's figures

`base` starts from the values of another experiment; `parts` puts several together.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lvdet.errors import InputError
from lvdet.experiments.conditions import OWN, part_of

FOLDER = Path(__file__).parent / "catalogue"
#: Stands for all experiments.
ALL = "all"
_HEADS = {"old": "AP-Old", "fixed": "AP-Fixed", "pool": "AP-Pool"}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    head:   the heading
    metric: measured under the row's condition
    after:  appended to that condition
    less:   appended instead of `after`, for the value to subtract
    config: measured instead of the row's config
    count:  shown as a plain number, not as a fraction
    """

    head: str
    metric: str
    after: str = ""
    less: str = ""
    config: str = ""
    count: bool = False

    def conditions(self, at: str) -> list[str]:
        """The conditions needed for a row of this column; the second one is subtracted."""
        return [at + self.after, *([at + self.less] if self.less else [])]

    @classmethod
    def of(cls, value: str | Mapping[str, Any]) -> Column:
        """From a metric's name, or a full description."""
        if not isinstance(value, str):
            return cls(**value)
        protocol, dot, metric = value.rpartition(".")
        plain = metric if metric != "AP" else _HEADS.get(protocol, metric)
        return cls(f"{_HEADS[protocol]} {metric}" if dot and metric != "AP" else plain, value)


@dataclass(frozen=True)
class Row:
    """A row of a table: a config under a condition."""

    label: str
    config: str
    at: str = OWN
    against: str = ""
    paper: tuple[float, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    seeds:   the number of runs of each config
    repeated: configs for which the rows are repeated, and their labels
    parts:   the names of the experiments that it consists of
    example: what is shown of a single run, in place of a table
    figure:  the kind of figure to draw
    note:    a text below the table, or all of it if nothing is measured
    """

    name: str
    label: str
    title: str
    seeds: int = 0
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    repeated: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    parts: tuple[str, ...] = ()
    example: str = ""
    figure: str = ""
    note: str = ""

    def wanted(self) -> Iterator[tuple[str, str]]:
        """The conditions needed for each config."""
        for row in self.rows:
            if self.example:
                yield row.config, row.at
            for config in ("", *self.repeated):
                for column in self.columns:
                    whose = config or column.config or row.config
                    yield from ((whose, at) for at in column.conditions(row.at))

    def needs(self) -> dict[str, set[str]]:
        """The parts of a run that the experiment needs, by config."""
        found: dict[str, set[str]] = {}
        for config, condition in self.wanted():
            part = part_of(condition)
            found.setdefault(config, set()).update([] if part is None else [part])
        return found


def names() -> list[str]:
    """The names of all tables and figures, in the paper's order."""
    order = {name: place for place, name in enumerate(_ORDER)}
    return sorted((path.stem for path in FOLDER.glob("*.toml")), key=lambda name: order[name])


def experiment(name: str) -> Experiment:
    """The experiment with the paper's label, with or without tab: or fig:."""
    bare = name.rpartition(":")[2]
    if bare not in names():
        raise InputError(f"unknown experiment {name!r} (see --list)")
    return _read(bare)


def chosen(requested: Iterable[str]) -> list[Experiment]:
    """The experiments with the given names; composite ones are expanded, without repeats."""
    found: dict[str, Experiment] = {}
    for name in requested:
        for one in [experiment(n) for n in names()] if name == ALL else [experiment(name)]:
            for part in one.parts:
                found[part] = experiment(part)
            if not one.parts:
                found[one.name] = one
    return list(found.values())


@cache
def _read(name: str) -> Experiment:
    values = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    base = values.pop("base", None)
    if base is not None:
        values = tomllib.loads((FOLDER / f"{base}.toml").read_text(encoding="utf-8")) | values
    config, against = values.pop("config", ""), values.pop("against", None)
    rows = [{"config": config} | row for row in values.pop("rows", [])]
    first = rows[0]["label"] if rows and against is None else against or ""
    return Experiment(
        name=name,
        columns=tuple(Column.of(value) for value in values.pop("columns", [])),
        rows=tuple(
            Row(**({"against": first} | row | {"paper": tuple(row.get("paper", ()))}))
            for row in rows
        ),
        parts=tuple(values.pop("parts", ())),
        **values,
    )


_ORDER = (
    "teaser",
    "balance_calib",
    "artificially_limit_dets_per_class",
    "higher_dets_per_im",
    "lvis_subsets",
    "dets_per_cat",
    "ap_fixed_big_table",
    "ap_fixed_losses",
    "ap_fixed_components",
    "ap_fixed_samplers",
    "ap_fixed_crt",
    "ap_fixed_larger_models",
    "score-dist",
    "higher_dets_per_im_with_pool",
    "ap_pool_losses",
    "ap_pool_calib",
    "calibrated_qualitative",
    "ap_fixed_pool_all",
    "ap_fixed_pool_losses",
    "ap_fixed_pool_components",
    "ap_fixed_pool_samplers",
    "ap_fixed_pool_crt",
    "ap_fixed_pool_larger_models",
    "supp_ap_fixed_pool_crt_all",
    "supp_ap_fixed_pool_larger",
    "supp_ap_fixed_pool_losses",
    "supp_ap_fixed_pool_components",
    "supp_nms_comparison",
    "norm_fc_code",
    "supp_loss_tuning",
)
