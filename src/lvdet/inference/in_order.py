"""Work on a thread of its own, in the order in which it is given."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
from threading import Thread
from types import TracebackType
from typing import Self


class InOrder:
    """Calls functions one after the other, while whoever gives them does something else.

    ahead: how many may wait; then giving one waits too

    What one of them raises ends the work: it is raised again where the next is given, or at the
    end. Where the `with` is left by an error, what was given before it is still done.
    """

    def __init__(self, ahead: int) -> None:
        self._calls: Queue[Callable[[], None] | None] = Queue(ahead)
        self._error: BaseException | None = None
        self._thread = Thread(target=self._work, daemon=True)

    def give(self, call: Callable[[], None]) -> None:
        """Has a function called after those before it."""
        if self._error is not None:
            raise self._error
        self._calls.put(call)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._calls.put(None)
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            if self._error is None:
                try:
                    call()
                except BaseException as error:
                    self._error = error
