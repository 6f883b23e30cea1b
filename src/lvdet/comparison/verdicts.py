"""What the differences say, in words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from lvdet.comparison.differences import Difference
from lvdet.rendering.table_text import percent, signed

if TYPE_CHECKING:
    from lvdet.comparison.comparison_result import ClassDifference

#: Differences of each protocol, by metric.
Differences = Mapping[str, Mapping[str, Difference]]

GROUPS = {"APr": "rare", "APc": "common", "APf": "frequent"}


def title(protocol: str) -> str:
    """The protocol's name as people write it."""
    return f"AP-{protocol.capitalize()}"


def interval_text(item: Difference, digits: int = 2) -> str:
    """The interval in percent; "" where undefined."""
    if math.isnan(item.low):
        return ""
    return f"{signed(item.low, digits)} to {signed(item.high, digits)}"


def level_text(confidence: float) -> str:
    """How sure an interval is."""
    return f"{100 * confidence:.10g}%"


def sentences(
    baseline: str,
    name: str,
    differences: Differences,
    old_beyond_fixed: Difference,
    budgets: Mapping[str, str],
    classes: Sequence[ClassDifference],
    thin: Collection[str],
    confidence: float,
) -> list[str]:
    """All that can be said of a detector beside the baseline; `thin` are the metrics whose classes
    have few images."""
    found = [
        _protocol(baseline, name, protocol, budgets[protocol], metrics, thin, confidence)
        for protocol, metrics in differences.items()
    ]
    found += [_old_and_fixed(baseline, name, differences, old_beyond_fixed, confidence)]
    found += [_classes(name, classes, 1 - confidence)]
    return [text for text in found if text]


def _protocol(
    baseline: str,
    name: str,
    protocol: str,
    budget: str,
    metrics: Mapping[str, Difference],
    thin: Collection[str],
    confidence: float,
) -> str:
    whole = metrics["AP"]
    start = f"{title(protocol)} ({budget}): "
    if math.isnan(whole.delta):
        return f"{start}there is nothing to be found."
    range_text = _with_interval(whole, confidence)
    if math.isnan(whole.low):
        text = f"{start}{signed(whole.delta)}; too few images have objects to say more."
    elif whole.holds:
        word = "better" if whole.delta > 0 else "worse"
        text = f"{start}{name} is {word} than {baseline}: {range_text}."
    else:
        text = f"{start}no difference between {name} and {baseline} that holds: {range_text}."
    held = [
        f"{GROUPS[key]} {signed(item.delta)}{' (few images)' if key in thin else ''}"
        for key, item in metrics.items()
        if key in GROUPS and item.holds
    ]
    if held:
        return f"{text} By frequency {', '.join(held)} {'holds' if len(held) == 1 else 'hold'}."
    return text


def _old_and_fixed(
    baseline: str, name: str, differences: Differences, beyond: Difference, confidence: float
) -> str:
    """Whether what AP-Old shows is there without its limit an image; `beyond` is how far AP-Old's
    difference is from AP-Fixed's, on the same drawn sets."""
    old, fixed = differences["old"]["AP"], differences["fixed"]["AP"]
    if math.isnan(old.low) or math.isnan(fixed.low):
        return ""
    word = "gain" if old.delta > 0 else "loss"
    there = _with_interval(fixed, confidence)
    shrinks = beyond.holds and (beyond.delta > 0) == (old.delta > 0)
    if old.holds and not fixed.holds and shrinks:
        return (
            f"The {word} of {name} under AP-Old vanishes under AP-Fixed: there it is {there}, "
            "which does not hold."
        )
    if old.holds and not fixed.holds:
        return (
            f"The {word} of {name} under AP-Old is not certain under AP-Fixed: there it is "
            f"{there}, which does not hold, but it is not certain to be smaller either."
        )
    if old.holds and (old.delta > 0) != (fixed.delta > 0):
        other = "worse" if fixed.delta < 0 else "better"
        return (
            f"The {word} of {name} under AP-Old vanishes under AP-Fixed, where it is {other} than "
            f"{baseline} by {percent(abs(fixed.delta))}."
        )
    if old.holds:
        text = f"The {word} of {name} holds under AP-Old and under AP-Fixed"
        if not beyond.holds:
            return f"{text}."
        size = "smaller" if shrinks else "larger"
        return f"{text}, where it is {size}: {signed(fixed.delta)}, not {signed(old.delta)}."
    if fixed.holds:
        word = "gain" if fixed.delta > 0 else "loss"
        if beyond.holds and (beyond.delta > 0) != (fixed.delta > 0):
            return f"The {word} of {name} under AP-Fixed does not show under AP-Old."
        return f"The {word} of {name} holds under AP-Fixed, and is not certain under AP-Old."
    return ""


def _classes(name: str, classes: Sequence[ClassDifference], rate: float) -> str:
    tested = [one for one in classes if one.tested]
    held = [one for one in tested if one.holds]
    better = sum(one.fixed.delta > 0 for one in held)
    left_out = len(classes) - len(tested)
    text = (
        f"{name}: of {_count(len(tested))} that can be tested under AP-Fixed, {len(held):,} differ "
        f"({better:,} better, {len(held) - better:,} worse)"
    )
    if held:
        text += f", of which at most {100 * rate:.3g}% are expected to be chance"
    text += "."
    if not tested:
        text = f"{name}: no class can be tested for itself."
    if left_out:
        text += f" {_count(left_out)} with objects in too few images {_were(left_out)} not tested."
    return text


def _with_interval(item: Difference, confidence: float) -> str:
    return f"{signed(item.delta)} ({level_text(confidence)} interval {interval_text(item)})"


def _count(classes: int) -> str:
    return f"{classes:,} class{'' if classes == 1 else 'es'}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
