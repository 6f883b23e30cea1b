"""A results file with calibrated scores, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator

from lvdet.calibrate.calibrator import Calibrator
from lvdet.read.detections import require_ending, write_tables
from lvdet.read.files import Progress
from lvdet.read.stream import detection_tables
from lvdet.tables.detections import Detections


def calibrate_file(
    calibrator: Calibrator,
    source: str | os.PathLike[str] | list[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Writes what is read with new scores, some rows at a time; returns how many there were."""
    require_ending(target)
    rows = 0

    def tables() -> Iterator[Detections]:
        nonlocal rows
        for table in detection_tables(source, threads=threads, progress=progress):
            rows += len(table)
            yield calibrator.transform(table, threads=threads)

    write_tables(tables(), target)
    return rows
