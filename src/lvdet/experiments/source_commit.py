"""The source commit that numbers were computed with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def source_commit() -> str | None:
    """The commit of lvdet's source, marked if files were changed; None if unknown. `LVDET_COMMIT`
    sets it if there is no repository."""
    if given := os.environ.get("LVDET_COMMIT"):
        return given
    folder = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
