"""The numbers of the log as scalars for TensorBoard, where it is installed and asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lvdet.errors import InputError

#: The folder of the event files, in the run's.
EVENTS = "tensorboard"


class Scalars:
    """Event files of a run from a step on; those of later steps do not count any more."""

    def __init__(self, folder: Path, step: int) -> None:
        try:
            from torch.utils.tensorboard.writer import SummaryWriter
        except ImportError:
            raise InputError(
                "run.tensorboard is true, but TensorBoard is not installed: pip install tensorboard"
            ) from None
        self._writer: Any = SummaryWriter(folder / EVENTS, purge_step=step + 1)

    def write(self, record: Mapping[str, Any]) -> None:
        """The numbers of a line of the log, at its step."""
        for name, value in numbers(record):
            self._writer.add_scalar(name, value, record["step"])
        self._writer.flush()


def numbers(record: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    """All numbers in a record by their path, but for its step and time."""
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from numbers(value, f"{before}{key}/")
        elif isinstance(value, int | float) and before + key not in ("step", "time"):
            yield before + key, value
