"""A remote file that arrives in a temporary one, several parts at a time."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lvdet.files.stores import Stored
from lvdet.operating_system import PlacedFile

#: Bytes of one request at most, and the number of requests under way at once. Their product is
#: held in memory.
PART, REQUESTS = 1 << 23, 8
#: The widest gap between parts that one request fetches.
_GAP = 1 << 18


@lru_cache(maxsize=1)
def _fetchers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(REQUESTS, thread_name_prefix="lvdet-fetch")


class Arriving:
    """The parts of a remote file that were wanted, in a temporary file without a name.

    Parts are fetched in the order in which they were wanted, by all files together. What was not
    wanted is fetched when it is read.
    """

    def __init__(self, open_stored: Callable[[], Stored]) -> None:
        self._file = PlacedFile()
        self._guard = threading.Lock()
        self._begins: list[int] = []  # of the parts, ascending; none overlap
        self._parts: dict[int, tuple[int, Future[None]]] = {}  # by begin: end, and its arrival
        self._first = 0  # so many bytes from the beginning have arrived
        self._watching: list[NDArray[np.int64]] = []
        self._failed = self._closed = False
        self._opened = _fetchers().submit(self._open, open_stored)

    def _open(self, open_stored: Callable[[], Stored]) -> Stored:
        stored = open_stored()
        with self._guard:
            if not self._closed:
                self._file.truncate(stored.size)
        return stored

    @property
    def stored(self) -> Stored:
        """The object as it was when it was opened; raises if it does not exist."""
        return self._opened.result()

    def want(self, spans: Iterable[tuple[int, int]]) -> None:
        """Begins to fetch what of these (begin, count) is not under way."""
        size = self.stored.size
        for begin, end in _joined((begin, min(begin + count, size)) for begin, count in spans):
            for part in self._claimed(begin, end, PART):
                _fetchers().submit(self._receive, *part)

    def want_all(self) -> None:
        """Begins to fetch the whole file, without waiting for its size."""
        self._opened.add_done_callback(
            lambda opened: None if opened.exception() else self.want([(0, opened.result().size)])
        )

    def read(self, begin: int, count: int) -> bytes:
        """These bytes, once they are there; fewer at the end of the file."""
        end = min(begin + count, self.stored.size)
        for part in self._claimed(begin, end, max(end - begin, 1)):
            self._receive(*part)
        with self._guard:
            arrivals = [self._parts[at][1] for at in self._overlapping(begin, end)]
        for arrival in arrivals:
            arrival.result()
        return self._file.read(begin, max(end - begin, 0))

    def fileno(self) -> int:
        """The temporary file. Only what has arrived is there."""
        return self._file.fileno()

    @property
    def whole(self) -> bool:
        """Whether everything has arrived."""
        with self._guard:
            return self._opened.done() and self._first == self.stored.size

    def watch(self, control: NDArray[np.int64]) -> None:
        """Keeps the third number at the bytes that have arrived from the beginning; sets the second
        where no more will."""
        with self._guard:
            control[2] = self._first
            control[1] = int(self._failed)
            self._watching.append(control)

    def check(self) -> None:
        """Raises what a part failed with."""
        for _, arrival in list(self._parts.values()):
            if arrival.done():
                arrival.result()

    def close(self) -> None:
        """Fetches no more; the temporary file is gone when nobody reads it."""
        with self._guard:
            self._closed = True
            for _, arrival in self._parts.values():
                arrival.cancel()
            self._file.close()

    def __del__(self) -> None:
        self.close()

    def _claimed(self, begin: int, end: int, most: int) -> list[tuple[int, int, Future[None]]]:
        """The parts of these bytes that nobody has begun to fetch, as (begin, end, arrival), of at
        most so many bytes each; whoever calls has to fetch them."""
        with self._guard:
            gaps = []
            for at in self._overlapping(begin, end):
                gaps.append((begin, at))
                begin = self._parts[at][0]
            gaps.append((begin, end))
            claimed = []
            for at, upto in gaps:
                for part in range(at, upto, most):
                    arrival: Future[None] = Future()
                    claimed.append((part, min(part + most, upto), arrival))
                    insort(self._begins, part)
                    self._parts[part] = claimed[-1][1:]
            return claimed

    def _overlapping(self, begin: int, end: int) -> list[int]:
        """Where the parts begin that have some of these bytes."""
        first = max(bisect_right(self._begins, begin) - 1, 0)
        last = bisect_left(self._begins, end)
        return [at for at in self._begins[first:last] if self._parts[at][0] > begin]

    def _receive(self, begin: int, end: int, arrival: Future[None]) -> None:
        if self._closed:
            arrival.cancel()  # else a reader would wait forever
        if not arrival.set_running_or_notify_cancel():
            return
        try:
            content = self.stored.read(begin, end - begin)
            with self._guard:
                if not self._closed:
                    self._file.write(begin, content)
            arrival.set_result(None)
        except BaseException as error:
            arrival.set_exception(error)
            self._failed = True
        self._tell()

    def _tell(self) -> None:
        """Tells those who watch what has arrived."""
        with self._guard:
            while self._first in self._parts:
                end, arrival = self._parts[self._first]
                if not arrival.done() or arrival.cancelled() or arrival.exception() is not None:
                    break
                self._first = end
            for control in self._watching:
                control[2] = self._first
                if self._failed:
                    control[1] = 1


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same (begin, end) in their order, neighbours as one."""
    joined: list[tuple[int, int]] = []
    for begin, end in spans:
        if joined and 0 <= begin - joined[-1][1] <= _GAP:
            joined[-1] = joined[-1][0], end
        elif end > begin:
            joined.append((begin, end))
    return joined
