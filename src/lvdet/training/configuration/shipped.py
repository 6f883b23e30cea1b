"""The configs that ship with lvdet: one for each row of the paper's tables."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

#: Their folder. Paths in them are relative to the current one.
FOLDER = Path(__file__).parents[1] / "configs"

_HEADER = re.compile(r"# lvdet train (\S+)\n# (.+)\n# Paper \(([^)]+)\): (.+)\n# Time: ")


@dataclass(frozen=True)
class Shipped:
    """A shipped config by name, described by the comment at its top.

    label:  of the paper's table
    result: what the paper reports
    """

    name: str
    what: str
    label: str
    result: str


def shipped_names() -> list[str]:
    """All names, the baseline first."""
    names = sorted(path.stem for path in FOLDER.glob("*.toml"))
    return sorted(names, key=lambda name: name != "baseline")


def shipped_file(name: str) -> Path | None:
    """The file of a name, with or without extension; None if there is none."""
    stem = name.removesuffix(".toml")
    return FOLDER / f"{stem}.toml" if stem in shipped_names() else None


def shipped_configs() -> list[Shipped]:
    """All shipped configs."""
    found = []
    for name in shipped_names():
        match = _HEADER.match((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
        assert match is not None, name
        assert match[1] == name
        found.append(Shipped(name, match[2], match[3], match[4]))
    return found
