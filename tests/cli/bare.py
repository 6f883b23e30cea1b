"""The command line where there is nothing but PyTorch, NumPy and Pillow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"

#: What a bare image does not have. The names of lvdet's own dependencies, and its compiled core.
MISSING = [
    "lvdet._native",
    "typer",
    "click",
    "rich",
    "scipy",
    "pyarrow",
    "jinja2",
    "plotly",
    "safetensors",
    "pycocotools",
]
BARE = f"""
import sys
sys.path.insert(0, {str(SOURCE)!r})
for name in {MISSING!r}:
    sys.modules[name] = None
from lvdet.cli import main
main()
"""


def bare(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`lvdet` where the missing packages cannot be imported."""
    return subprocess.run(
        [sys.executable, "-c", BARE, *map(str, arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
