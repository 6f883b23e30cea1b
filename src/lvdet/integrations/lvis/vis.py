"""LVISVis, which lvdet does not provide."""

from __future__ import annotations

from typing import Any

from lvdet.errors import LvdetError

__all__ = ["LVISVis"]


class LVISVis:
    """Not provided: use lvis for drawing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise LvdetError("LVISVis is not part of lvdet's drop-ins; use the lvis package to draw")
