"""The source commit that numbers were computed with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def source_commit() -> str | None:
    """The commit of lvdet's source, marked if files were changed; None if unknown. `LVDET_COMMIT`
    sets it if there is no repository. A repository in which lvdet is merely installed does not
    count."""
    if given := os.environ.get("LVDET_COMMIT"):
        return given
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        return _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*") or None
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        timeout=10,
        check=True,
    )
    return done.stdout.strip()
