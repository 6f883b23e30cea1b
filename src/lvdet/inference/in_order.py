"""Runs work on a separate thread, in the order given."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from types import TracebackType
from typing import Self


class InOrder:
    """Calls functions one at a time, in order, on a separate thread.

    room: the total size that may be queued; beyond it, adding more blocks

    What one of them raises ends the work: it is raised again where the next is given, or at the
    end. Where the `with` is left by an error, what was given before it is still done.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._calls: deque[tuple[Callable[[], None], int]] = deque()
        self._waiting = 0
        self._ended = False
        self._error: BaseException | None = None
        self._changed = Condition()
        self._thread = Thread(target=self._work, daemon=True)

    def give(self, call: Callable[[], None], size: int = 1) -> None:
        """Queues a function."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._error or not self._calls or self._waiting + size <= self._room
            )
            if self._error is not None:
                raise self._error
            self._calls.append((call, size))
            self._waiting += size
            self._changed.notify_all()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._calls or self._ended)
                if not self._calls:
                    return
                call, size = self._calls.popleft()
                self._waiting -= size
                self._changed.notify_all()
            try:
                call()
            except BaseException as error:
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            del call
