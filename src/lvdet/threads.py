"""The number of threads of the native kernels: one setting for the whole process."""

from __future__ import annotations

import os

from lvdet.errors import InputError
from lvdet.operating_system import core_count

MOST_THREADS = 1024

_setting: int | None = None


def set_threads(threads: int | None) -> None:
    """Sets the number of threads for the rest of this process.

    None restores the default: LVDET_THREADS if set, or one per core. Results do
    not depend on the number of threads.
    """
    global _setting
    _setting = None if threads is None else _valid(threads)


def thread_count() -> int:
    """The number of threads to use: as set, or LVDET_THREADS, or the process's cores."""
    if _setting is not None:
        return _setting
    text = os.environ.get("LVDET_THREADS", "")
    if text:
        try:
            return _valid(int(text))
        except ValueError:
            raise InputError(f"LVDET_THREADS is {text!r}, expected a number of threads") from None
    return core_count()


def _valid(threads: int) -> int:
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise InputError(f"threads is {threads!r}, expected an integer")
    if not 1 <= threads <= MOST_THREADS:
        raise InputError(f"threads is {threads}, expected 1 to {MOST_THREADS:,}")
    return threads
