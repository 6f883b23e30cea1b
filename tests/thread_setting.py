"""The number of threads of this process, set for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import lvdet

Result = TypeVar("Result")


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Sets the number of threads, and returns to the default at the end."""
    lvdet.set_threads(count)
    try:
        yield
    finally:
        lvdet.set_threads(None)


def on_threads(make: Callable[[], Result], *counts: int) -> list[Result]:
    """What is made on each of the numbers of threads."""
    found = []
    for count in counts:
        with threads(count):
            found.append(make())
    return found
