"""The rows that count: of each class, and of each image, the best."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.files.detection_files import read_detections, write_detections
from lvdet.tables.detections import Detections
from lvdet.threads import thread_count


def compact(files: Iterable[Path], ledger: _native.Ledger, dets_per_image: int) -> int:
    """Rewrites files of rows, one at a time, with only the best of each class over all of them and
    the best `dets_per_image` of each image; returns how many.

    `ledger` has the scores of all rows; the rows of an image are in one file. Of equal scores the
    earlier rows count.
    """
    rows = 0
    left = ledger.ties()
    for path in files:
        table = read_detections(path)
        counting = _counting(table, ledger, dets_per_image, left)
        rows += len(counting)
        if len(counting) < len(table):
            write_detections(counting, path)
    return rows


def _counting(
    table: Detections, ledger: _native.Ledger, dets_per_image: int, left: NDArray[np.int64]
) -> Detections:
    """The rows of a table that count. `left` says for each class of the ledger how many rows of
    just its threshold still do."""
    keep = ledger.count(table.category_ids[table.category], table.score, left)
    if dets_per_image:
        best = np.ones(len(table), dtype=np.uint8)
        images = len(table.image_ids)
        _native.keep_top(table.image, images, table.score, dets_per_image, best, thread_count())
        keep |= best
    return table if keep.all() else table[keep.view(np.bool_)]
