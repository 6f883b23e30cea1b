"""Rows as CSV that a spreadsheet shows but does not calculate."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

#: What a cell must not begin with: spreadsheets take the rest for a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """The rows as CSV. Undefined numbers and None are empty cells; text that a spreadsheet would
    take for a formula gets an apostrophe in front."""
    lines = io.StringIO(newline="")
    csv.writer(lines).writerows(map(_cell, row) for row in rows)
    return lines.getvalue()


def _cell(value: object) -> object:
    if value is None or value != value:
        return ""
    if isinstance(value, str) and value.startswith(FORMULA) and not _is_number(value):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
