"""A results file with calibrated scores, in bounded memory."""

from __future__ import annotations

import os
from functools import partial

from lvdet.calibration.calibrator import Calibrator
from lvdet.files.convert import convert
from lvdet.files.progress import Update


def calibrate_file(
    calibrator: Calibrator,
    source: str | os.PathLike[str] | list[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    update: Update | None = None,
) -> int:
    """Writes what is read with new scores, some rows at a time; returns how many there were."""
    change = partial(calibrator.transform)
    written, _ = convert(source, target, change=change, update=update)
    return written
