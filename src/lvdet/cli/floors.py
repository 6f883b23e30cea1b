"""`--fail-under`: metrics that continuous integration holds a detector to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from lvdet.errors import InputError

if TYPE_CHECKING:
    from lvdet.evaluation.evaluation_result import Evaluation

#: The exit code where a number is lower than asked for.
FAILED = 3
#: A perfect AP falls short of 1 by some 1e-16.
_ROUNDING = 1e-9


class Floor(NamedTuple):
    """The lowest value of a metric that is good enough; protocol "" for the usual one."""

    protocol: str
    metric: str
    value: float

    def __str__(self) -> str:
        return f"{self.protocol}.{self.metric}".lstrip(".")


def parse_floor(text: str) -> Floor:
    """The floor that a text such as "AP=0.3" or "old.APr=0.2" names."""
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
    """What is lower than its floor, or undefined, in sentences. A metric without a protocol is that
    of AP-Fixed, or of the only protocol there is."""
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
