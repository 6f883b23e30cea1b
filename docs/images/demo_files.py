"""The files that `lvdet demo` makes, for the scripts that draw pictures of them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def demo_files() -> Iterator[Path]:
    """The demo's folder, which its own output calls "demo"; removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "lvdet", "demo", "demo"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        yield Path(folder, "demo")
