"""Progress of a task on a cluster, drawn by the process that waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from lvdet.cluster.engine import fetch, start_actor, wait
from lvdet.errors import LvdetError
from lvdet.files.progress import Progress, Update

#: Seconds between two looks.
_INTERVAL = 0.2


class _Noted:
    """The number of the step under way, its title and unit, and how far it is."""

    def __init__(self) -> None:
        self.step, self.text, self.reached = 0, ("", ""), (0, 0)

    def begin(self, title: str, unit: str) -> None:
        self.step, self.text, self.reached = self.step + 1, (title, unit), (0, 0)

    def reach(self, done: int, total: int) -> None:
        self.reached = done, total

    def look(self) -> tuple[int, tuple[str, str], tuple[int, int]]:
        return self.step, self.text, self.reached


class Board:
    """What a verb in a task takes as `progress`."""

    def __init__(self, noted: Any) -> None:
        self._noted = noted

    @staticmethod
    def start() -> Any:
        """A handle of a new one, for the task and for `drawn`."""
        return start_actor(_Noted)

    @contextmanager
    def __call__(self, title: str, /, *, unit: str = "bytes") -> Iterator[Update | None]:
        self._noted.begin.remote(title, unit)
        yield lambda done, total: self._noted.reach.remote(done, total)


def drawn(noted: Any, progress: Progress, answer: Any) -> None:
    """Draws what is noted until the answer is there."""
    shown = 0
    with ExitStack() as stack:
        update: Update | None = None
        while wait([answer], _INTERVAL)[0] is None:
            try:
                step, (title, unit), (done, total) = fetch(noted.look.remote())
            except LvdetError:  # lost with its node; the answer is not
                continue
            if step > shown:
                stack.close()
                update = stack.enter_context(progress(title, unit=unit))
                shown = step
            if update is not None and total:
                update(done, total)
