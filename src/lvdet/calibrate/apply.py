"""A results file with calibrated scores, in bounded memory."""

from __future__ import annotations

import os
from functools import partial

from lvdet.calibrate.calibrator import Calibrator
from lvdet.read.convert import convert
from lvdet.read.files import Progress


def calibrate_file(
    calibrator: Calibrator,
    source: str | os.PathLike[str] | list[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Writes what is read with new scores, some rows at a time; returns how many there were."""
    change = partial(calibrator.transform, threads=threads)
    written, _ = convert(source, target, change=change, threads=threads, progress=progress)
    return written
