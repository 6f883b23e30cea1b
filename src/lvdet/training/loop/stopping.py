"""Stops on signals, after the current step."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from lvdet.errors import LvdetError


class StoppedError(LvdetError):
    """The run was stopped by a signal, after a checkpoint; the text says how to resume."""

    def __init__(self, text: str, number: int) -> None:
        super().__init__(text)
        self.signal = number


#: Seconds in which another SIGTERM is the same one: a batch system sends it to all processes, and
#: torchrun, which has it too, to those that it started.
SAME = 2.0


class Stop:
    """signal: the first that came, 0 before."""

    signal = 0
    since = 0.0

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Records a signal; the second one has its default effect."""
        if number == self.signal == signal.SIGTERM and time.monotonic() < self.since + SAME:
            return
        if self.signal:
            signal.signal(number, signal.SIG_DFL)
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            signal.raise_signal(number)
        self.signal, self.since = number, time.monotonic()


@contextmanager
def stopping() -> Iterator[Stop]:
    """Records SIGINT and SIGTERM inside the context. Only works in a process's main thread."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {
        number: signal.signal(number, stop.handle) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
