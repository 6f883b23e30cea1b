"""Replaces pycocotools and lvis with lvdet's classes, for code that cannot be edited."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

#: The modules that are replaced, packages before what is in them.
MODULES = (
    "pycocotools",
    "pycocotools.coco",
    "pycocotools.cocoeval",
    "pycocotools.mask",
    "lvis",
    "lvis.lvis",
    "lvis.results",
    "lvis.eval",
    "lvis.vis",
)
_PACKAGES = ("pycocotools", "lvis")

_depth = 0
#: What stood in sys.modules before; None if nothing did.
_modules: dict[str, ModuleType | None] = {}
#: Where names were replaced: the module, the name, the original and its replacement.
_names: list[tuple[ModuleType, str, Any, Any]] = []


def patch() -> None:
    """Makes `import pycocotools` and `import lvis` give lvdet's drop-ins, installed or not.

    Names that modules have imported from them already are replaced as well. Calls nest: as many
    calls of `unpatch` undo them.
    """
    global _depth
    _depth += 1
    if _depth > 1:
        return
    replacements: dict[int, Any] = {}
    for name in MODULES:
        drop_in = import_module(f"lvdet.integrations.{name}")
        original = _modules[name] = sys.modules.get(name)
        sys.modules[name] = drop_in
        if original is not None:
            replacements[id(original)] = drop_in
            for key, value in vars(original).items():
                if _belongs(value) and hasattr(drop_in, key):
                    replacements[id(value)] = getattr(drop_in, key)
    for module in list(sys.modules.values()):
        if not isinstance(module, ModuleType) or _root(module.__name__) in (*_PACKAGES, "lvdet"):
            continue
        for key, value in list(vars(module).items()):
            if id(value) in replacements and (isinstance(value, ModuleType) or _belongs(value)):
                _names.append((module, key, value, replacements[id(value)]))
                setattr(module, key, replacements[id(value)])


def unpatch() -> None:
    """Undoes one call of `patch`; the last one restores everything. Does nothing without a previous
    call."""
    global _depth
    if _depth == 0:
        return
    _depth -= 1
    if _depth:
        return
    for module, key, original, replacement in _names:
        if vars(module).get(key) is replacement:
            setattr(module, key, original)
    _names.clear()
    for name, before in _modules.items():
        if before is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = before
    _modules.clear()


def _belongs(value: Any) -> bool:
    """Whether a class or function belongs to one of the reference packages."""
    return callable(value) and _root(getattr(value, "__module__", None) or "") in _PACKAGES


def _root(name: str) -> str:
    return name.partition(".")[0]
