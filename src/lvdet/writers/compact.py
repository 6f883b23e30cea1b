"""A journal without the rows that no longer count."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lvdet.files.detection_files import read_detections, write_detections
from lvdet.writers.top_scores import TopScores


def compact(files: Iterable[Path], scores: TopScores) -> int:
    """Rewrites files of rows, one at a time, with only the best of each class over all of them.

    `scores` are those of all rows. Of equal scores the earlier rows count. Returns how many rows
    are left.
    """
    ties = dict(scores.ties())
    rows = 0
    for path in files:
        table = read_detections(path)
        names = table.category_ids.tolist()
        threshold = scores.thresholds(table.category_ids)[table.category]
        keep = table.score > threshold
        equal = np.flatnonzero(table.score == threshold)
        left = np.array([ties.get(name, 0) for name in names], dtype=np.int64)
        among = table.category[equal]
        counted = _earlier_of_group(among, len(names)) < left[among]
        keep[equal[counted]] = True
        left -= np.bincount(among[counted], minlength=len(names))
        ties.update(zip(names, left.tolist(), strict=True))
        rows += int(np.count_nonzero(keep))
        if not keep.all():
            write_detections(table[keep], path)
    return rows


def _earlier_of_group(group: NDArray[np.int32], groups: int) -> NDArray[np.int64]:
    """[N] how many rows of the same group come before each."""
    order = np.argsort(group, kind="stable")
    count = np.bincount(group, minlength=groups)
    begin = np.cumsum(count) - count
    earlier = np.empty(len(group), dtype=np.int64)
    earlier[order] = np.arange(len(group)) - begin[group[order]]
    return earlier
