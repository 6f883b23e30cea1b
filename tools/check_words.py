"""Finds wording that reads as translated, and says what to write instead.

    python tools/check_words.py [FILE…]

Without files, reads modules (messages, help texts, docstrings, comments), the pages of the
documentation and the notebook. The terms are in CONTRIBUTING.md, "Glossary".
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "benchmarks/README.md",
    "docs/**/*.md",
    "docs/*.ipynb",
    "src/lvdet/**/*.py",
    "tools/site/*.py",
    "benchmarks/*.py",
    "benchmarks/peers/*.py",
)

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
    # Foreign constructions. What English allows after or before them stands in the pattern.
    r"\b(?:goes|go|going|went) on\b(?! to\b)": "continues, resumes",
    r"\bis that of(?! \[?[A-Z])|\bare those of(?! (?:\[?[A-Z]|pycocotools|lvis\b))": (
        "is the … of, equals, belongs to"
    ),
    r"(?<!\ball )(?<!\bmost )(?<!\bnone )(?<!\bsome )(?<!\bpart )(?<!\brest )(?<!\bhalf )"
    r"(?<!\bmuch )(?<!\bshare )\bof it\b": "its …, or leave it out",
    r"(?<!\b[Tt]here )\b(?:is|are) no\b(?! (?:longer|more|less)\b)": "is not a",
    r"\band else\b|, else\b|[.;:] [Ee]lse (?:the|it|they|these|those|a)\b": "otherwise, or",
    r"\bper (?:image|class) an? (?:image|class)\b": "per image, per class",
    r"\b(?:is|are|was|were|be|been|not|as|you|nobody) ask(?:s|ed)? for\b": "requested, selected",
    r"\bfalling (?:score|order|value)s?\b|\bin rising order\b": "descending, ascending",
    r"\bworked out\b": "computed",
    r"\b(?:gives?|gave) back\b": "returns",
    r"\b[Ww]here (?:there (?:is|are) (?:none|no|any)|it is not)\b": "if there is none",
    r"\band stop(?=[.,;:)])": "say what stops",
    r"\btakes? no -": "does not accept",
    r"\b(?:of|by|has|have|at|and|are|with) so many\b": "this many, or the number",
    r"\b(?:is|are|was) (?:told|said) (?:when|where|here|once|so|of|which)\b": "reported",
    r"\bone after the other\b": "in turn, in order, one at a time",
    r"\boutside of\b": "outside",
    r"\blook(?:s|ed)? at only where\b|\bthat (?:is|are) looked at\b": "read, used, considered",
    r"\bthat are none\b": "padding, invalid",
    r"\b(?:is|are) there already\b": "exists already",
}
#: Between two words: spaces, or the end of a line with what opens the next: quotes, or a comment.
_BREAK = r"(?:[ \t]+|[ \t]*[\"']?[ \t]*\n[ \t]*(?:#:?[ \t]*|[rf]{0,2}[\"'])?)"
_BEHIND = re.compile(r"\(\?<!.*?\)")  # has a fixed width, so a space in it stays one


def _compiled(rules: Mapping[str, str]) -> dict[re.Pattern[str], str]:
    made = {}
    for pattern, better in rules.items():
        behind = "".join(_BEHIND.findall(pattern))
        rest = _BEHIND.sub("", pattern).replace(" ", _BREAK)
        made[re.compile(behind + rest)] = better
    return made


_RULES = _compiled(RULES)


def findings(text: str) -> Iterator[tuple[int, str, str]]:
    """The line, the words and what to write instead, for each place in a text."""
    for pattern, better in _RULES.items():
        for found in pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield line, " ".join(found.group().split()), better


def main(arguments: list[str]) -> int:
    """Prints the findings; returns 1 if there are any, otherwise 0."""
    paths = [Path(argument) for argument in arguments] or [
        path for pattern in FILES for path in sorted(ROOT.glob(pattern))
    ]
    bad = False
    for path in paths:
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        text = path.read_text(encoding="utf-8")
        for line, words, better in sorted(findings(text)):
            print(f"{name}:{line}: {words!r}: write {better!r}")
            bad = True
    return int(bad)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
