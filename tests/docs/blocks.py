"""The code blocks of a page, and what the comments above them say.

A comment on the line above a block's fence says how it is run:

    <!-- not run: REASON -->    needs a GPU, real LVIS files, …
    <!-- long -->               takes over 5 seconds: `make test-long` runs it
    <!-- shape: REASON -->      numbers in the output may differ: it trains
    <!-- first: COMMAND -->     a command to run before, which the page does not show
    <!-- setup: PYTHON -->      statements to run before a Python block, not shown either

Several comments may stand above each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"(?P<indent> *)```(?P<language>\w*)\s*")
_COMMENT = re.compile(r"\s*<!-- (not run|long|shape|first|setup)(?:: (.*?))? -->\s*")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is its fence's line number, from 1."""

    line: int
    language: str
    text: str
    comments: tuple[tuple[str, str], ...]
    follows: bool  # nothing but empty lines between it and the block before

    def said(self, word: str) -> list[str]:
        """What the comments of one kind say."""
        return [text for kind, text in self.comments if kind == word]

    @property
    def runs(self) -> bool:
        """Whether the tests run it at all."""
        return self.language in ("console", "python") and not self.said("not run")


def pages() -> list[str]:
    """All pages, by their path in the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
    found += sorted((ROOT / "docs").rglob("*.md"))
    return [str(path.relative_to(ROOT)) for path in found]


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return list(_blocks((ROOT / page).read_text(encoding="utf-8").splitlines()))


def _blocks(lines: list[str]) -> Iterator[Block]:
    comments: list[tuple[str, str]] = []
    follows = False
    number = 0
    while number < len(lines):
        fence, comment = _FENCE.fullmatch(lines[number]), _COMMENT.fullmatch(lines[number])
        if comment:
            comments.append((comment[1], comment[2] or ""))
        elif fence:
            start, indent = number, len(fence["indent"])
            number += 1
            body: list[str] = []
            while lines[number].strip() != "```":
                body.append(lines[number][indent:])
                number += 1
            yield Block(start + 1, fence["language"], "\n".join(body), tuple(comments), follows)
            comments, follows = [], True
        elif lines[number].strip():
            comments, follows = [], False
        number += 1
