"""Merges the files of several processes."""

from __future__ import annotations

import os
from collections.abc import Iterable

from lvdet.errors import InputError
from lvdet.files.convert import convert
from lvdet.files.progress import Progress
from lvdet.writers.arguments import budgets


def merge_top_k(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    dets_per_class: int,
    dets_per_image: int = 0,
    progress: Progress | None = None,
) -> int:
    """Writes the best `dets_per_class` detections of each class across all files and the best
    `dets_per_image` of each image; returns their number. 0 turns a budget off.

    `paths` are files, in their order, or one folder or pattern, in order of name. If each file was
    written by a `TopKWriter` with these limits, the result equals that of one process that adds all
    images in that order. Ties go to the earlier file, and within a file to the earlier row. No
    image may be in more than one file.
    """
    per_class, per_image = budgets(dets_per_class, dets_per_image)
    source = paths if isinstance(paths, str | os.PathLike) else [*paths]
    if source == []:
        raise InputError(f"{os.fspath(target)}: no files to merge")
    written, _ = convert(
        source, target, dets_per_class=per_class, dets_per_image=per_image, progress=progress
    )
    return written
