"""Cases of which a few are enough for `make test`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(short: int, cases: Iterable[Any]) -> list[Any]:
    """All cases as parameters; those after the first few are left to `make test-long`."""
    return [
        case if place < short else pytest.param(case, marks=pytest.mark.long)
        for place, case in enumerate(cases)
    ]
