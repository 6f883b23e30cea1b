"""`--fail-under`: lowest acceptable metrics, for continuous integration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from lvdet.errors import InputError

if TYPE_CHECKING:
    from lvdet.evaluation.evaluation_result import Evaluation

#: Exit code if a metric is below its floor.
FAILED = 3
#: A perfect AP falls short of 1 by some 1e-16.
_ROUNDING = 1e-9


class Floor(NamedTuple):
    """The lowest acceptable value of a metric; protocol "" stands for the default."""

    protocol: str
    metric: str
    value: float

    def __str__(self) -> str:
        return f"{self.protocol}.{self.metric}".lstrip(".")


def parse_floor(text: str) -> Floor:
    """Parses a floor such as "AP=0.3" or "old.APr=0.2"."""
    name, _, value = text.partition("=")
    protocol, _, metric = name.strip().rpartition(".")
    try:
        floor = float(value)
    except ValueError:
        floor = math.nan
    if not metric or not 0 <= floor <= 1:
        raise InputError(
            f"--fail-under is {text!r}, expected a metric and a fraction such as AP=0.3 or "
            "old.APr=0.2"
        )
    return Floor(protocol, metric, floor)


def shortfalls(result: Evaluation, floors: list[Floor]) -> list[str]:
    """One sentence per metric that is undefined or below its floor. Without a protocol, a metric
    refers to AP-Fixed, or to the only protocol evaluated."""
    found = []
    for floor in floors:
        only = next(iter(result)) if len(result) == 1 else "fixed"
        protocol = floor.protocol or only
        if protocol not in result or floor.metric not in result[protocol]:
            known = ", ".join(result.get(protocol, result))
            raise InputError(f"--fail-under names {floor}, expected one of {known}")
        value = result[protocol][floor.metric]
        if not value >= floor.value - _ROUNDING:
            shown = "undefined" if math.isnan(value) else f"{value:.6g}"
            found.append(f"{protocol}.{floor.metric} is {shown}, below {floor.value:.6g}")
    return found
