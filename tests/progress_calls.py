"""A `Progress` for tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager


def calling(update: Callable[[int, int], None]) -> Callable[..., AbstractContextManager[object]]:
    """Progress that passes every update on."""

    @contextmanager
    def progress(_: str, /, *, unit: str = "bytes") -> Iterator[Callable[[int, int], None]]:
        yield update

    return progress
