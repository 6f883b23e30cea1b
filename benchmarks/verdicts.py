"""What the measurements say: ratios, whether the tools agree, which targets are met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from process import Sample

BASELINE = "hotcoco"
SUBJECT = "lvdet"
TOLERANCE = 1e-6
ASSERTED = ("AP", "AP50", "AP75", "APr", "APc", "APf", "AR")
# Tools that promise the reference's numbers; what the others differ by is only reported.
EXACT = ("lvdet", "hotcoco", "ultrafast-pycocotools", "lvis", "pycocotools")

# The samples of one workload, by tool; a tool that failed has its one failed sample last.
Samples = Mapping[str, Sequence[Sample]]


@dataclass(frozen=True)
class Agreement:
    """The greatest differences between two tools, over all their runs."""

    tools: tuple[str, str]
    differences: dict[str, float]

    @property
    def worst(self) -> float:
        return max(self.differences[name] for name in ASSERTED if name in self.differences)

    @property
    def asserted(self) -> bool:
        return self.tools[0] in EXACT and self.tools[1] in EXACT

    @property
    def holds(self) -> bool:
        return self.worst <= TOLERANCE or not self.asserted


@dataclass(frozen=True)
class Target:
    """What lvdet is to stay under: a share of the baseline's wall time, seconds after imports, peak
    memory, or seconds a byte (of lvdet from start to end, of the baseline for reading alone); or,
    without a share, a number of MiB at the peak."""

    workload: str
    quantity: str
    share: float | None
    mib: float = 0.0

    @property
    def most(self) -> float:
        return self.mib if self.share is None else self.share


TARGETS = (
    Target("lvis-bbox", "wall", 1 / 5),
    Target("lvis-bbox", "peak", 1 / 4),
    Target("lvis-bbox-digits", "wall", 1 / 5),
    Target("lvis-bbox-pretty", "wall", 1 / 5),
    Target("lvis-bbox-parquet", "wall", 1 / 7),
    Target("lvis-bbox-tables", "wall", 0.6),
    Target("lvis-bbox-99m", "seconds a byte", 0.273),
    Target("lvis-bbox-99m", "peak", None, mib=728),
    Target("lvis-segm", "wall", 1 / 3),
    Target("coco-bbox", "wall", 1 / 2),
    Target("coco-bbox", "seconds after imports", 1 / 3),
)


def completed(samples: Samples) -> dict[str, list[Sample]]:
    """The tools that ended every run, with their runs."""
    return {
        tool: list(runs) for tool, runs in samples.items() if not any(run.failure for run in runs)
    }


def ratio(samples: Samples, tool: str, quantity: str = "wall") -> float | None:
    """The tool's quantity over the baseline's: the median of the ratios round by round.

    With fewer rounds than the baseline there are no pairs, and it is the ratio of medians.
    """
    ended = completed(samples)
    if tool not in ended or BASELINE not in ended:
        return None
    own = [_quantity(run, quantity) for run in ended[tool]]
    base = [_quantity(run, quantity, reading=True) for run in ended[BASELINE]]
    if len(own) != len(base):
        return median(own) / median(base)
    return median(a / b for a, b in zip(own, base, strict=True))


def highest(samples: Samples, tool: str, quantity: str) -> float | None:
    """The highest of the tool's runs."""
    ended = completed(samples)
    return max(_quantity(run, quantity) for run in ended[tool]) if tool in ended else None


def agreements(samples: Samples) -> list[Agreement]:
    """lvdet (or, without it, the first tool) against each of the others."""
    ended = completed(samples)
    if not ended:
        return []
    first = SUBJECT if SUBJECT in ended else next(iter(ended))
    return [
        Agreement((first, other), _differences(ended[first], ended[other]))
        for other in ended
        if other != first
    ]


def _differences(first: Sequence[Sample], second: Sequence[Sample]) -> dict[str, float]:
    return {
        name: max(_difference(a.metrics[name], b.metrics[name]) for a in first for b in second)
        for name in first[0].metrics
        if name in second[0].metrics
    }


def _difference(a: float | None, b: float | None) -> float:
    if a is None or b is None:
        return 0.0 if a is b else 1.0  # As far apart as two fractions can be.
    return abs(a - b)


def _quantity(run: Sample, name: str, *, reading: bool = False) -> float:
    if name == "seconds a byte":
        return (run.seconds("read") if reading else run.wall) / run.bytes
    if name == "seconds after imports":
        return run.after_imports
    return run.wall if name == "wall" else run.peak_mib
