"""Finds wording that reads as translated, and says what to write instead.

    python tools/check_words.py [FILE…]

Without files, reads the modules of `src/lvdet` (messages, help texts, docstrings, comments) and the
pages in `PAGES`. The terms are in CONTRIBUTING.md, "Glossary".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "CONTRIBUTING.md")

_EACH = r"an? (?:image|class|row|line|file|step|detector|metric)\b"
#: What not to write, a space standing for any break between words; and what to write.
RULES = {
    rf"\b(?:\d[\d,]*|so many|as many) (?:detections )?{_EACH}": "N per image, N per class",
    r"\blimits? an? (?:image|class)\b": "limit per image, limit per class",
    rf"\b(?:[Dd]etections|bytes|images|classes) {_EACH}(?! (?:has|have|may|can)\b)": (
        "detections per image, bytes per row"
    ),
    rf"\b(?:one|(?:a|one) (?:row|mask|number|record)) {_EACH}": "one per row, one per class",
    r"\b(?:goes|go|went|going) on where\b": "resumes",
    r"\bbefore it came here\b": "appears truncated",
    r"\b(?:seems|seem) to have been cut\b": "appears truncated",
    r"\b(?:was|were) (?:not )?(?:evidently )?cut at\b": "is truncated at, appears truncated at",
    r"\buncut\b": "untruncated",
    r"\bcut off here\b": "truncated here",
    r"\bwhich of them is it to be\b": "pass either X or Y, not both",
    r"\bin the manner of\b": "like",
    r"\bare to cover\b": "confidence level",
    r"\b[Aa]s far as can be told\b": "appears to",
    r"\bsomething else than\b": "other than",
    r"\b[Ww]hole numbers? of (?:\d+ bits|\d+ or more)\b": "64-bit integer, non-negative integer",
    r"\b(?:[Rr]ight|[Ww]rong) detections?\b": "correct detection, incorrect detection",
    r"\b[Tt]here is nothing to be\b": "there is nothing to",
    r"\bunknown ending\b": "unknown extension",
    r"\bcannot be written: ": "cannot write: ",
    r"\bcannot be used: ": "invalid X: ",
}
#: Between two words: spaces, or the end of a line with what opens the next: quotes, or a comment.
_BREAK = r"(?:[ \t]+|[ \t]*[\"']?[ \t]*\n[ \t]*(?:#:?[ \t]*|[rf]{0,2}[\"'])?)"
_COMPILED = {re.compile(pattern.replace(" ", _BREAK)): better for pattern, better in RULES.items()}


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """The line, the words and what to write instead, for each place in a text."""
    for pattern, better in _COMPILED.items():
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield line, " ".join(found.group().split()), better


def main(arguments: list[str]) -> int:
    """Prints what was found; 1 where there is something."""
    paths = [Path(argument) for argument in arguments] or [
        *(ROOT / page for page in PAGES),
        *sorted((ROOT / "src" / "lvdet").rglob("*.py")),
    ]
    bad = False
    for path in paths:
        for line, words, better in sorted(findings(path.read_text(encoding="utf-8"))):
            name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            print(f"{name}:{line}: {words!r}: write {better!r}")
            bad = True
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
