"""Results from one format to another."""

from __future__ import annotations

import os
from dataclasses import replace

from lvdet.read.detections import read_counted, require_ending, write_detections
from lvdet.read.files import Progress


def convert(
    source: str | os.PathLike[str] | list[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    per_class: int | None = None,
    masks: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Writes what `read_detections` reads; returns how many rows were written, and of how many.

    With masks=False only boxes are written, made from the masks where there are no others.
    """
    require_ending(target)
    detections, found = read_counted(
        source, masks=masks, per_class=per_class, threads=threads, progress=progress
    )
    if not masks:
        detections = replace(detections, masks=None, boxes_given=True)
    write_detections(detections, target)
    return len(detections), found
