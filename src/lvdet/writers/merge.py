"""Files of several processes as one."""

from __future__ import annotations

import os
from collections.abc import Iterable

from lvdet.errors import InputError
from lvdet.files.convert import convert
from lvdet.files.progress import Update


def merge_top_k(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    *,
    per_class: int,
    update: Update | None = None,
) -> int:
    """Writes the best `per_class` detections of each class over all files; returns how many.

    `paths` are files, in their order, or one folder or pattern, in order of name. Where each
    file has the best `per_class` of its images, as `TopKWriter` writes them, the outcome is that
    of one process that adds all images in that order. Ties go to the earlier file, and in a file
    to the earlier row. An image must not be in more than one file.
    """
    source = paths if isinstance(paths, str | os.PathLike) else [*paths]
    if source == []:
        raise InputError(f"{os.fspath(target)}: there are no files to merge")
    written, _ = convert(source, target, per_class=per_class, update=update)
    return written
