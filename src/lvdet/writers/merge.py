"""Files of several processes as one."""

from __future__ import annotations

import os
from collections.abc import Iterable

from lvdet.errors import InputError
from lvdet.files.convert import convert
from lvdet.files.progress import Progress


def merge_top_k(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    dets_per_class: int,
    progress: Progress | None = None,
) -> int:
    """Writes the best `dets_per_class` detections of each class over all files; returns how many.

    `paths` are files, in their order, or one folder or pattern, in order of name. Where each file
    holds the best `dets_per_class` of its images, as `TopKWriter` writes them, the result is that
    of one process that adds all images in that order. Ties go to the earlier file, and within a
    file to the earlier row. No image may be in more than one file.
    """
    source = paths if isinstance(paths, str | os.PathLike) else [*paths]
    if source == []:
        raise InputError(f"{os.fspath(target)}: no files to merge")
    written, _ = convert(source, target, dets_per_class=dets_per_class, progress=progress)
    return written
