"""LVISVis, which is not here."""

from __future__ import annotations

from typing import Any

from lvdet.errors import LvdetError

__all__ = ["LVISVis"]


class LVISVis:
    """Drawing is left to lvis."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise LvdetError("LVISVis is not part of lvdet's drop-ins; use the lvis package to draw")
