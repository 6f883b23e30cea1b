"""The numbers of the log as TensorBoard scalars, if requested and installed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lvdet.errors import InputError

#: The folder of the event files, in the run's.
EVENTS = "tensorboard"


class Scalars:
    """The event files of a run, from a step on; earlier events of later steps are superseded."""

    def __init__(self, folder: Path, step: int) -> None:
        try:
            from torch.utils.tensorboard.writer import SummaryWriter
        except ImportError:
            raise InputError(
                "run.tensorboard is true, but TensorBoard is not installed: pip install tensorboard"
            ) from None
        self._writer: Any = SummaryWriter(folder / EVENTS, purge_step=step + 1)

    def write(self, record: Mapping[str, Any]) -> None:
        """Writes the numbers of a log record, at its step."""
        for name, value in numbers(record):
            self._writer.add_scalar(name, value, record["step"])
        self._writer.flush()


def numbers(record: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """All numbers in a record by path, except its step and time."""
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from numbers(value, f"{before}{key}/")
        elif isinstance(value, int | float) and before + key not in ("step", "time"):
            yield before + key, value
