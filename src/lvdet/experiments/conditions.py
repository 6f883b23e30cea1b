"""Conditions under which a detector is measured, as text, with the paper's limits at any scale.

own                     AP-Old, AP-Fixed and AP-Pool
scores                  how high scores are
nms=0.3                 the same as own, with another NMS threshold
image=300               a limit per image
class=10000,image=300   two limits in turn; classes=rc first restricts the detector
train:beta, oracle:beta calibrated scores, by what they were fitted on
"""

from __future__ import annotations

from lvdet.errors import InputError
from lvdet.studies.budget_tables import Limits

OWN, SCORES = "own", "scores"
#: Optional measurements of a run, in the order in which they are made.
NMS, LIMITS, CALIBRATION = PARTS = ("nms", "limits", "calibration")


def part_of(condition: str) -> str | None:
    """The part of a run in which a condition is measured; None if every run has it."""
    kind = condition.replace(":", "=").partition("=")[0]
    if condition in (OWN, SCORES):
        return None
    if kind == "nms":
        return NMS
    if kind in ("train", "oracle"):
        return CALIBRATION
    if kind in ("image", "class", "classes"):
        return LIMITS
    raise InputError(f"unknown condition {condition!r}")


def limits_of(condition: str, image_factor: float, class_factor: float) -> Limits:
    """The limits of a condition, at a scale with a given fraction of the paper's budgets."""
    parts = dict(part.split("=") for part in condition.split(","))
    image, group = parts.get("image"), parts.get("class")
    return Limits(
        None if image is None else scaled(int(image), image_factor),
        None if group is None else scaled(int(group), class_factor),
        classes=parts.get("classes"),
    )


def scaled(limit: int, factor: float) -> int:
    """A limit at another scale, at least 1."""
    return max(1, round(limit * factor))
