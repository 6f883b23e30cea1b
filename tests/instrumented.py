"""Builds lvdet again with other compiler flags, into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def built(folder: Path, flags: str) -> Path:
    """The Python of an environment that has lvdet with the flags, and all else from here."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=False)
        own = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        seen = [path for path in sys.path if path.endswith("site-packages")]
        # Appended: of two installed lvdet its own comes first, and no .pth file of theirs is run.
        (own / "others.pth").write_text(f"import sys; sys.path.extend({seen!r})\n")
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--no-deps",
         "--force-reinstall", "--config-settings=cmake.build-type=RelWithDebInfo",
         f"--config-settings=build-dir={folder / 'build'}", str(ROOT)],
        env=os.environ | {"CXXFLAGS": flags}, check=True,
    )  # fmt: skip
    return python
