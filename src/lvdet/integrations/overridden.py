"""Methods of the reference tools that lvdet does not call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lvdet.errors import LvdetError


def require_own(run: Any, base: type, names: Sequence[str]) -> None:
    """Raises for an evaluator that overrides steps that lvdet computes differently."""
    for name in names:
        if name in vars(run) or getattr(type(run), name, None) is not getattr(base, name, None):
            raise LvdetError(
                f"{type(run).__name__} overrides {name}(), which lvdet does not call: overlaps and "
                "matches are computed for all images at once; use the reference package for it"
            )
