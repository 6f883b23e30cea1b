"""What the differences mean, in words."""

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
    """The name of the protocol as people write it."""
    return f"AP-{protocol.capitalize()}"


def interval_text(item: Difference, digits: int = 2) -> str:
    """The interval in percent; "" where undefined."""
    if math.isnan(item.low):
        return ""
    return f"{signed(item.low, digits)} to {signed(item.high, digits)}"


def level_text(confidence: float) -> str:
    """The confidence level in percent."""
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
    """The conclusions about a detector compared with the baseline; `thin` are the metrics whose
    classes have few images."""
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
        return f"{start}there are no objects to detect."
    range_text = _with_interval(whole, confidence)
    if math.isnan(whole.low):
        text = (
            f"{start}{signed(whole.delta)}; too few images have objects for a confidence interval."
        )
    elif whole.holds:
        word = "better" if whole.delta > 0 else "worse"
        text = f"{start}{name} is {word} than {baseline}: {range_text}."
    else:
        text = f"{start}no significant difference between {name} and {baseline}: {range_text}."
    held = [
        f"{GROUPS[key]} {signed(item.delta)}{' (few images)' if key in thin else ''}"
        for key, item in metrics.items()
        if key in GROUPS and item.holds
    ]
    if held:
        return f"{text} Significant by frequency group: {', '.join(held)}."
    return text


def _old_and_fixed(
    baseline: str, name: str, differences: Differences, beyond: Difference, confidence: float
) -> str:
    """Whether a difference under AP-Old persists without its limit per image. `beyond` is how far
    AP-Old's difference is from AP-Fixed's, on the same bootstrap samples."""
    old, fixed = differences["old"]["AP"], differences["fixed"]["AP"]
    if math.isnan(old.low) or math.isnan(fixed.low):
        return ""
    word = "gain" if old.delta > 0 else "loss"
    there = _with_interval(fixed, confidence)
    shrinks = beyond.holds and (beyond.delta > 0) == (old.delta > 0)
    if old.holds and not fixed.holds and shrinks:
        return (
            f"The {word} of {name} under AP-Old vanishes under AP-Fixed: {there}, not significant."
        )
    if old.holds and not fixed.holds:
        return (
            f"The {word} of {name} under AP-Old is uncertain under AP-Fixed: {there}, not "
            "significant, but not significantly smaller either."
        )
    if old.holds and (old.delta > 0) != (fixed.delta > 0):
        other = "worse" if fixed.delta < 0 else "better"
        return (
            f"The {word} of {name} under AP-Old reverses under AP-Fixed, where {name} is {other} "
            f"than {baseline} by {percent(abs(fixed.delta))}."
        )
    if old.holds:
        text = f"The {word} of {name} holds under both AP-Old and AP-Fixed"
        if not beyond.holds:
            return f"{text}."
        size = "but is smaller" if shrinks else "and is larger"
        change = f"{signed(fixed.delta)} instead of {signed(old.delta)}"
        return f"{text}, {size} under AP-Fixed: {change}."
    if fixed.holds:
        word = "gain" if fixed.delta > 0 else "loss"
        if beyond.holds and (beyond.delta > 0) != (fixed.delta > 0):
            return f"The {word} of {name} under AP-Fixed does not show under AP-Old."
        return f"The {word} of {name} holds under AP-Fixed but is uncertain under AP-Old."
    return ""


def _classes(name: str, classes: Sequence[ClassDifference], rate: float) -> str:
    tested = [one for one in classes if one.tested]
    held = [one for one in tested if one.holds]
    better = sum(one.fixed.delta > 0 for one in held)
    left_out = len(classes) - len(tested)
    differ = "differs" if len(held) == 1 else "differ"
    text = (
        f"{name}: {len(held):,} of {_count(len(tested))} tested under AP-Fixed {differ} "
        f"({better:,} better, {len(held) - better:,} worse)"
    )
    if held:
        text += f"; at most {100 * rate:.3g}% of these are expected to be due to chance"
    text += "."
    if not tested:
        text = f"{name}: no class can be tested on its own."
    if left_out:
        text += f" {_count(left_out)} with objects in too few images {_were(left_out)} not tested."
    return text


def _with_interval(item: Difference, confidence: float) -> str:
    return (
        f"{signed(item.delta)} ({level_text(confidence)} confidence interval {interval_text(item)})"
    )


def _count(classes: int) -> str:
    return f"{classes:,} class{'' if classes == 1 else 'es'}"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
