"""One tool in one process, measured from outside and held to its limits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
POLL_SECONDS = 0.1
# ru_maxrss counts KiB on Linux and bytes on macOS.
MAXRSS_PER_MIB = 1 << 20 if sys.platform == "darwin" else 1 << 10


@dataclass(frozen=True)
class Limits:
    """What one process may use; memory is watched where the system has /proc."""

    seconds: float
    mib: float


@dataclass(frozen=True)
class Sample:
    """One run of one tool: seconds from start to exit, the peak, and the line it printed."""

    wall: float
    peak_mib: float
    failure: str | None
    line: dict[str, Any] = field(default_factory=dict)
    bytes: int = 0  # of the files read

    @property
    def metrics(self) -> dict[str, float | None]:
        return dict(self.line["metrics"])

    @property
    def after_imports(self) -> float:
        """Seconds from the end of the imports to the metrics, by the runner's own clock."""
        return self.seconds("read") + self.seconds("evaluate")

    def seconds(self, phase: str) -> float:
        return float(self.line["seconds"][phase])


def measure(command: Sequence[str | Path], limits: Limits) -> Sample:
    """Run the command to its end; a failure is part of the sample, not an exception."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        # A session of its own, so that the limits reach the tool's sub-processes.
        process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        watch = _Watch(process.pid, limits)
        try:
            # Unlike Popen.wait, wait4 gives the peak, over the sub-processes too.
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            _kill_group(process.pid)
            raise
        finally:
            watch.stop()
        failure = watch.verdict or _exit_failure(process.returncode, _text(err))
        line = {} if failure else json.loads(_text(out))
    return Sample(wall, usage.ru_maxrss / MAXRSS_PER_MIB, failure, line)


class _Watch:
    """A thread that kills the process group when it passes a limit."""

    def __init__(self, pid: int, limits: Limits) -> None:
        self.verdict: str | None = None
        self._pid = pid
        self._limits = limits
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _poll(self) -> None:
        deadline = time.monotonic() + self._limits.seconds
        while not self._ended.wait(POLL_SECONDS):
            if time.monotonic() > deadline:
                self.verdict = f"killed after {self._limits.seconds:.0f} s"
            elif _resident_mib(self._pid) > self._limits.mib:
                self.verdict = f"killed at {self._limits.mib / 1024:.1f} GiB"
            if self.verdict:
                _kill_group(self._pid)
                return


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError):  # It ended by itself meanwhile.
        os.killpg(pid, signal.SIGKILL)


def _resident_mib(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return pages * PAGE / (1 << 20)


def _exit_failure(code: int, stderr: str) -> str | None:
    if code == 0:
        return None
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    lines = stderr.strip().splitlines()
    return lines[-1] if lines else f"exit status {code}"


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="replace"))
