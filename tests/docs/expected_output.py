"""Whether what a block printed is what the page says."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

_TIME = re.compile(
    r"\b\d[\d,.]* ?(?:d \d+ h|h \d+ min|min|s|ms|seconds?|minutes?|images/s|masks/s)\b(?: left)?"
)
#: What training says now and then.
_WAITS = re.compile(r" +waits for data \d+%")
_NUMBER = re.compile(r"[-+]?\b\d[\d,.]*\b")
#: On a line of its own: any lines.
_ANY_LINES = ("...", "…")


def same(expected: str, printed: str, *, shape: bool = False) -> bool:
    """Whether the output of a command matches the page.

    A line `...` stands for any lines, `…` inside a line for anything. A printed line may be broken
    at a space on the page. Times are not compared; with `shape`, numbers are not either.
    """
    wanted = _normal(expected, shape).splitlines()
    pattern = ""
    for line in wanted:
        if line.strip() in _ANY_LINES:
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("…")) + r"[\n ]\s*?"
    lines = [line + "\n" for line in _normal(printed, shape).splitlines()]
    return re.fullmatch(pattern, "".join(lines)) is not None


def _normal(text: str, shape: bool) -> str:
    text = _TIME.sub("<time>", text)
    if shape:
        text = re.sub(r"[ \t]+", " ", _NUMBER.sub("0", _WAITS.sub("", text)))
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def same_value(expected: Any, value: Any) -> bool:
    """Whether a value equals a comment's: floats to 1e-9, the rest exactly."""
    if isinstance(expected, tuple | list):
        same_size = isinstance(value, tuple | list) and len(value) == len(expected)
        return same_size and all(same_value(*pair) for pair in zip(expected, value, strict=True))
    if isinstance(expected, float):
        return math.isclose(expected, value, rel_tol=1e-9)
    return bool(expected == value)


def literal(comment: str) -> tuple[bool, Any]:
    """Whether a comment is a value, and which."""
    try:
        return True, ast.literal_eval(comment.strip())
    except (ValueError, SyntaxError):
        return False, None
