"""A rule of Windows here: a file that is open can be neither removed nor replaced."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lvdet import operating_system
from lvdet.files import writing
from lvdet.writers import owned_folder

MODULES = (operating_system, writing, owned_folder)


def keep_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes removing and replacing open files an error, and lvdet heed it."""
    for module in MODULES:
        monkeypatch.setattr(module, "OPEN_FILES_STAY", True)
    for name in ("replace", "unlink"):
        monkeypatch.setattr(os, name, _refusing(getattr(os, name)))
    monkeypatch.setattr(Path, "unlink", _refusing(Path.unlink))


def _refusing(call: Any) -> Any:
    def refuse(*arguments: Any, **options: Any) -> Any:
        held = _open_files()
        for path in arguments:
            assert options.get("dir_fd") is None, "Windows opens nothing relative to a folder"
            if os.path.lexists(path) and os.path.realpath(path) in held:
                raise PermissionError(13, "open in a process", os.fspath(path))
        return call(*arguments, **options)

    return refuse


def _open_files() -> set[str]:
    """The files that this process has open or mapped."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.add(os.readlink(link))
        except FileNotFoundError:  # that of the listing
            continue
    for line in Path("/proc/self/maps").read_text().splitlines():
        found.add(line.partition("/")[2] and "/" + line.partition("/")[2])
    return found
