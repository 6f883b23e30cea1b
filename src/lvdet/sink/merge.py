"""Files of several processes as one."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lvdet.read.detections import read_detections, require_ending, write_detections
from lvdet.read.files import Progress


def merge_top_k(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    per_class: int,
    threads: int | None = None,
    progress: Progress | None = None,
) -> int:
    """Writes the best `per_class` detections of each class over all files; returns how many.

    `paths` is a list of files, in its order, or a folder or pattern, in order of name. Where each
    file has the best `per_class` of its images, as `TopKWriter` writes them, the outcome is that
    of one process that adds all images in that order. Ties go to the earlier file, and in a file
    to the earlier row. An image must not be in more than one file.
    """
    require_ending(target)
    source = [*paths] if not isinstance(paths, str | os.PathLike) else paths
    detections = read_detections(source, per_class=per_class, threads=threads, progress=progress)
    write_detections(detections, target)
    return len(detections)
