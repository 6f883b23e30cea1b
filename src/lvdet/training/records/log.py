"""The log of a run: one JSON object per line, flushed to disk immediately."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from lvdet.errors import OutputError
from lvdet.files.writing import write_whole
from lvdet.training.records.scalars import Scalars


class Log:
    """`log.jsonl`, from a step on: lines of later steps, and a last one that is not whole, are of
    a run that was killed, and are cut off.

    Each line has "step", the steps done so far. Numbers that are not finite are null.

    scalars: gets each new line too
    """

    def __init__(self, path: Path, step: int, scalars: Scalars | None = None) -> None:
        self.path = path
        self.scalars = scalars
        self.records = [record for record in read_log(path) if record["step"] <= step]
        with write_whole(path) as file:
            for record in self.records:
                file.write(_line(record))

    def write(self, record: dict[str, Any]) -> None:
        """Writes a line."""
        self.records.append(record)
        try:
            with open(self.path, "ab") as file:
                file.write(_line(record))
        except OSError as error:
            raise OutputError(f"{self.path}: cannot write: {error.strerror}") from None
        if self.scalars is not None:
            self.scalars.write(record)

    def evaluated(self, step: int) -> bool:
        """Whether the log has the evaluation after a step."""
        return any(r["step"] == step and "evaluation" in r for r in self.records)


def read_log(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a log; empty if there is no file."""
    records = []
    content = path.read_bytes() if path.exists() else b""
    for line in content.split(b"\n"):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and isinstance(record.get("step"), int):
            records.append(record)
    return records


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(_finite(record)).encode() + b"\n"


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
