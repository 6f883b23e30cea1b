"""Progress of long tasks, for any display."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeAlias

#: Called regularly with (units done, units in total).
Update: TypeAlias = Callable[[int, int], None]


class Progress(Protocol):
    """Called at the start of each long task with its title and unit. Returns a context manager
    that is entered for the duration of the task and yields an `Update`, or None to hear nothing."""

    def __call__(
        self, title: str, /, *, unit: str = "bytes"
    ) -> AbstractContextManager[Update | None]: ...


def track(
    progress: Progress | None, title: str, unit: str = "bytes"
) -> AbstractContextManager[Update | None]:
    """Starts a task, if anybody listens."""
    return nullcontext() if progress is None else progress(title, unit=unit)
