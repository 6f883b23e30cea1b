"""Checks output files before the work begins."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from lvdet.errors import OutputError
from lvdet.files.writing import is_special, require_ending, require_local, stream_number


def require_target(path: Path | None, endings: Sequence[str] = ()) -> None:
    """Raises for a file that could not be written or has none of these extensions. If it is
    standard output, what is printed for people goes to standard error."""
    if path is None:
        return
    require_local(path)
    if is_special(path):
        if stream_number(path) == 1:
            sys.stdout = sys.stderr
        return
    target = Path(os.path.realpath(path))
    if endings:
        require_ending(path, endings)
    if os.path.isdir(target):
        raise OutputError(f"{path}: cannot write: it is a folder")
    if not os.path.isdir(target.parent) and _denied(target.parent):
        raise OutputError(f"{path}: cannot write: no permission to enter {target.parent}")
    if not os.path.isdir(target.parent):
        raise OutputError(f"{path}: cannot write: no such folder: {target.parent}")
    if not os.access(target.parent, os.W_OK):
        raise OutputError(f"{path}: cannot write: no permission to write to {target.parent}")


def _denied(path: Path) -> bool:
    """Whether permissions forbid even examining the path."""
    try:
        os.stat(path)
    except PermissionError:
        return True
    except OSError:
        pass
    return False
