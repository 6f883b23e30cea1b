"""Lets another virtual environment see the packages of the one that runs this.

python share_packages.py ENVIRONMENT
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path


def share_packages(environment: Path) -> None:
    """Its own packages come first."""
    paths = {"base": str(environment), "platbase": str(environment)}
    theirs = Path(sysconfig.get_path("purelib", vars=paths))
    ours = sysconfig.get_path("purelib")
    (theirs / "shared.pth").write_text(f"import site; site.addsitedir({ours!r})\n")


if __name__ == "__main__":
    share_packages(Path(sys.argv[1]))
