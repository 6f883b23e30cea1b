"""Checks output files before the work begins."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from lvdet.errors import OutputError
from lvdet.files.writing import is_special, require_ending, require_local


def require_target(path: Path | None, endings: Sequence[str] = ()) -> None:
    """Raises for a file that could not be written or has none of these extensions."""
    if path is None:
        return
    require_local(path)
    target = Path(os.path.realpath(path))
    if is_special(target):
        return
    if endings:
        require_ending(path, endings)
    if target.is_dir():
        raise OutputError(f"{path}: cannot write: it is a folder")
    if not target.parent.is_dir():
        raise OutputError(f"{path}: cannot write: no such folder: {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{path}: cannot write: no permission to write to {target.parent}")
