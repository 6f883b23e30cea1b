"""The metrics, as rows of a table, and their values computed from curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.average_precision import Curves
from lvdet.tables.categories import FREQUENCIES
from lvdet.tables.matches import Matches

PROTOCOLS = ("old", "fixed", "pool")
#: Groups of classes by name, as rows.
Groups: TypeAlias = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Metric:
    """A mean over classes: of precision or recall, at one IoU or all, for one area range and one
    group of classes."""

    name: str
    recall: bool = False
    iou: float | None = None
    area: str = "all"
    group: str | None = None


AP = (Metric("AP"), Metric("AP50", iou=0.50), Metric("AP75", iou=0.75))
AP_AREAS = (
    Metric("APs", area="small"),
    Metric("APm", area="medium"),
    Metric("APl", area="large"),
)
AR = (
    Metric("AR", recall=True),
    Metric("ARs", recall=True, area="small"),
    Metric("ARm", recall=True, area="medium"),
    Metric("ARl", recall=True, area="large"),
)


def number_name(protocol: str) -> str:
    """What people call AP under a protocol, a budget or a preset."""
    return f"AP-{protocol.capitalize()}" if protocol in PROTOCOLS else f"AP ({protocol})"


def group_metrics(groups: Sequence[str]) -> tuple[Metric, ...]:
    """AP of each group: APr, APc, APf for LVIS's frequencies, AP_name for others."""
    names = dict.fromkeys((*FREQUENCIES, *groups))
    return tuple(
        Metric(f"AP{name}" if name in FREQUENCIES else f"AP_{name}", group=name) for name in names
    )


#: What every study shows: AP, APr, APc and APf, and their names.
SHORT = (AP[0], *group_metrics(()))
NAMES = tuple(metric.name for metric in SHORT)


def summarize(
    metrics: Sequence[Metric],
    curves: Curves,
    matches: Matches,
    groups: Groups,
    *,
    whole: NDArray[np.int64] | None = None,
) -> dict[str, float]:
    """The value of each metric: a mean over the curves of these matches, NaN if none defines it.
    `groups` lists the curves (rows) of each group, and `whole` those of metrics without a group;
    None for all."""
    return {metric.name: _value(metric, curves, matches, groups, whole) for metric in metrics}


def defined(values: Mapping[str, float]) -> dict[str, float | None]:
    """The values as written to files: None where undefined."""
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def _value(
    metric: Metric,
    curves: Curves,
    matches: Matches,
    groups: Groups,
    whole: NDArray[np.int64] | None,
) -> float:
    if metric.group is not None and metric.group not in groups:
        return float("nan")
    rows = whole if metric.group is None else groups[metric.group]
    area = matches.areas.index(metric.area)
    values = (curves.recall if metric.recall else curves.precision)[:, area]
    if rows is not None:
        values = values[rows]
    if metric.iou is not None:
        values = values[:, np.isclose(matches.thresholds, metric.iou, rtol=0, atol=1e-9)]
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
