"""The progress line of a run."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from typing import Any, TextIO


class LiveLine:
    """A line that is redrawn on a terminal; elsewhere, a new line now and then.

    every: of how many records one is shown where nobody is looking
    """

    def __init__(self, stream: TextIO | None = None, every: int = 10) -> None:
        self.stream = stream or sys.stderr
        self.every = every
        self.terminal = self.stream.isatty()
        self._count = 0
        self._drawn = False

    def record(self, record: Mapping[str, Any], steps: int) -> None:
        """Shows a record of the log."""
        text = record_text(record, steps)
        if self.terminal:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r{text[:width]:<{width}}", end="", file=self.stream, flush=True)
            self._drawn = True
            return
        self._count += 1
        if self._count == 1 or self._count % self.every == 0 or record["step"] == steps:
            print(text, file=self.stream, flush=True)

    def say(self, text: str) -> None:
        """Prints a permanent line."""
        self.end()
        print(text, file=self.stream, flush=True)

    def end(self) -> None:
        """Ends the line as it is."""
        if self._drawn:
            print(file=self.stream, flush=True)
        self._drawn = False


def record_text(record: Mapping[str, Any], steps: int) -> str:
    """Step, losses, speed and remaining time on one line."""
    losses = record["losses"]
    parts = [f"step {record['step']:,}/{steps:,}", f"loss {sum(losses.values()):.3f}"]
    parts += [f"{name} {value:.3f}" for name, value in losses.items()] if len(losses) > 1 else []
    parts += [f"{record['images_per_s']:.1f} images/s"]
    if record["data_wait"] > 0.1:
        parts += [f"waits for data {record['data_wait']:.0%}"]
    return "  ".join([*parts, f"{duration(record['seconds_left'])} left"])


def evaluation_text(step: int, outcome: Mapping[str, Any]) -> str:
    """AP under each protocol on one line, in percent as printed by `lvdet evaluate`, or the note
    recorded instead."""
    parts = [
        f"AP-{name.capitalize()} {'–' if found['AP'] is None else format(100 * found['AP'], '.2f')}"
        for name, found in outcome.items()
        if isinstance(found, Mapping) and "AP" in found
    ]
    return f"step {step:,}: " + ("  ".join(parts) or str(outcome.get("note", "evaluated")))


def duration(seconds: float) -> str:
    """Such as 45 s, 3 min, 2 h 05 min or 3 d 4 h."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes // 1440} d {minutes // 60 % 24} h"
