"""Under what a detector was measured, as a text, in the paper's numbers whatever the scale.

own                     AP-Old, AP-Fixed and AP-Pool
scores                  how high scores are
nms=0.3                 the same as own, after another suppression
image=300               a limit per image
class=10000,image=300   one after the other; classes=rc restricts the detector first
train:beta, oracle:beta calibrated scores, by what they were fitted on
"""

from __future__ import annotations

from lvdet.errors import InputError
from lvdet.studies.budget_tables import Limits

OWN, SCORES = "own", "scores"
#: What a run can be asked for beside what every run has, in the order in which it is measured.
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
