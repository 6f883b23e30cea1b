"""Pages whose blocks are not run yet, and why. Take a page out when its blocks are marked."""

from __future__ import annotations

_MARKS = "its blocks are not marked yet"

PENDING: dict[str, str] = {
    "benchmarks/README.md": _MARKS,
    "CONTRIBUTING.md": _MARKS,
    "docs/drop-ins.md": _MARKS,
    "docs/experiments.md": _MARKS,
    "docs/inference.md": _MARKS,
    "docs/synth.md": _MARKS,
    "docs/training.md": _MARKS,
}
