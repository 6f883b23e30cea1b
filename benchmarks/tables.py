"""The text that `run.py` prints."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from process import Sample
from verdicts import (
    ASSERTED,
    BASELINE,
    SUBJECT,
    TOLERANCE,
    Agreement,
    Samples,
    Target,
    agreements,
    ratio,
)

COLUMNS = (
    "tool",
    "rounds",
    "median wall",
    "min wall",
    "read",
    "evaluate",
    "after imports",
    "peak MiB",
    f"wall / {BASELINE}",
)


def workload_text(title: str, samples: Samples) -> str:
    """The table of one workload, with the differences of its results underneath."""
    rows = [_row(tool, samples) for tool in samples]
    notes = [_agreement_text(agreement) for agreement in agreements(samples)]
    return "\n".join([f"\n{title}", *_aligned([COLUMNS, *rows]), *notes])


def targets_text(outcomes: Sequence[tuple[Target, float | None]]) -> str:
    lines = ["\ntargets"]
    for target, reached in outcomes:
        most = (
            f"{target.mib:,.0f} MiB"
            if target.share is None
            else f"{target.share:.3f} of {BASELINE}"
        )
        aim = f"{target.workload}: {SUBJECT}'s {target.quantity} ≤ {most}"
        lines.append(f"  {_verdict(target, reached):<12} {aim}{_reached_text(reached)}")
    return "\n".join(lines)


def _row(tool: str, samples: Samples) -> tuple[str, ...]:
    runs = samples[tool]
    failure = runs[-1].failure
    if failure:
        return (tool, str(len(runs)), failure)
    relative = ratio(samples, tool)
    return (
        tool,
        str(len(runs)),
        _seconds(median(run.wall for run in runs)),
        _seconds(min(run.wall for run in runs)),
        _phase(runs, "read"),
        _phase(runs, "evaluate"),
        _seconds(median(run.after_imports for run in runs)),
        f"{median(run.peak_mib for run in runs):,.0f}",
        "–" if relative is None else f"{relative:.3f}",
    )


def _phase(runs: Sequence[Sample], name: str) -> str:
    return _seconds(median(run.seconds(name) for run in runs))


def _seconds(value: float) -> str:
    return f"{value:.3f} s"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    # The reason of a failure takes the rest of its row, so it must not widen a column.
    full = [row for row in rows if len(row) == len(COLUMNS)]
    widths = [max(len(row[i]) for row in full) for i in range(len(COLUMNS))]
    widths[0] = max(len(row[0]) for row in rows)
    return ["  " + "  ".join(_cells(row, widths)).rstrip() for row in rows]


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first = row[0].ljust(widths[0])
    if len(row) < len(widths):
        return [first, row[1].rjust(widths[1]), *row[2:]]
    return [first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]


def _agreement_text(agreement: Agreement) -> str:
    first, second = agreement.tools
    differing = {name: d for name, d in agreement.differences.items() if d > TOLERANCE}
    verdict = "agree" if agreement.worst <= TOLERANCE else "differ"
    if not agreement.holds:
        verdict = "DISAGREE"
    text = f"  {first} and {second} {verdict}: {agreement.worst:.1e} on {', '.join(ASSERTED)}"
    if differing:
        text += "; beyond it " + ", ".join(f"{name} {d:.1e}" for name, d in differing.items())
    return text


def _verdict(target: Target, reached: float | None) -> str:
    if reached is None:
        return "not measured"
    return "met" if reached <= target.most else "NOT MET"


def _reached_text(reached: float | None) -> str:
    return "" if reached is None else f" (here {reached:.3f})"
