"""Problems, and values that no table may contain."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.threads import thread_count


@dataclass(frozen=True)
class Problem:
    """One problem and its location. Rows count from 0."""

    source: str
    what: str
    row: int | None = None
    byte: int | None = None
    table: str = ""

    def __str__(self) -> str:
        place = self.source
        if self.row is not None:
            place += f", {self.table + ' ' if self.table else ''}row {self.row:,}"
        if self.byte is not None:
            place += f", byte {self.byte:,}"
        return f"{place}: {self.what}" if place else self.what


#: Maximum number of problems listed per file; the rest are counted.
MOST_PROBLEMS = 10_000


def more_problems(source: str, count: int) -> Problem:
    """One problem that stands for all that were not listed."""
    return Problem(source, f"and {count:,} more problems of this kind")


def require(problems: Iterator[Problem]) -> None:
    """Raises the first problem, if any."""
    for problem in problems:
        raise InputError(str(problem))


def require_limit(limit: object) -> None:
    """Checks that a number of detections is a valid limit."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit < 2**63:
        raise InputError(f"limit on detections is {limit!r}, expected a non-negative integer")


def value_problems(
    source: str, score: NDArray[np.float64], box: NDArray[np.float64]
) -> Iterator[Problem]:
    """Scores ([N]) and boxes ([N, 4]) that are not finite, and negative sizes."""
    first = _native.first_bad_row(score, box, thread_count())
    if first < 0:
        return
    score, box = score[first:], box[first:]
    finite = np.isfinite(box)
    for row in np.flatnonzero(
        ~(np.isfinite(score) & finite.all(axis=1)) | (box[:, 2:] < 0).any(axis=1)
    ):
        if not np.isfinite(score[row]):
            what = f"score is {number(score[row])}, expected a finite number"
        elif not finite[row].all():
            what = f"bbox is {numbers(box[row])}, expected finite numbers"
        else:
            what = f"bbox is {numbers(box[row])}, expected a non-negative width and height"
        yield Problem(source, what, int(first + row))


def number(value: float) -> str:
    """A number in a message."""
    return f"{value:g}"


def numbers(values: NDArray[np.float64]) -> str:
    """Numbers in a message."""
    return "[" + ", ".join(number(value) for value in values) + "]"
