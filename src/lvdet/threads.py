"""How many threads the native kernels use."""

from __future__ import annotations

import os

from lvdet.errors import InputError

MOST_THREADS = 1024


def thread_count(threads: int | None = None) -> int:
    """`threads`, or LVDET_THREADS, or the cores this process may use."""
    if threads is None:
        text = os.environ.get("LVDET_THREADS", "")
        if not text:
            return (
                len(os.sched_getaffinity(0))
                if hasattr(os, "sched_getaffinity")
                else (os.cpu_count() or 1)
            )
        try:
            threads = int(text)
        except ValueError:
            raise InputError(f"LVDET_THREADS is {text!r}, expected a number of threads") from None
    if not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise InputError(f"{threads} threads, expected 1 to {MOST_THREADS:,}")
    return threads
