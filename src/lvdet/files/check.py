"""Every problem of the input at once."""

from __future__ import annotations

import os

from lvdet.errors import InputError
from lvdet.files.annotation_files import load_ground_truth
from lvdet.files.detection_files import load_detections
from lvdet.files.progress import Progress, track
from lvdet.tables.problems import category_rows, pair_problems, unknown_ids
from lvdet.tables.values import Problem
from lvdet.threads import thread_count


def check(
    ground_truth: str | os.PathLike[str],
    detections: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
) -> list[Problem]:
    """All that is wrong with an annotation file, a results file, and the two together."""
    thread_count()  # a bad setting is no problem of the files
    try:
        with track(progress, "checking annotations") as update:
            gt, problems = load_ground_truth(ground_truth, update=update)
    except InputError as error:
        gt, problems = None, [Problem("", str(error))]
    if detections is None:
        return problems
    try:
        with track(progress, "checking results") as update:
            tables, found = load_detections(detections, update=update)
    except InputError as error:
        tables, found = [], [Problem("", str(error))]
    problems += found
    if gt is not None:
        for table in tables:
            told = {p.row for p in found if p.source == table.source and p.row is not None}
            problems += pair_problems(gt, table, told=told)
            unknown = category_rows(gt, table) < 0
            problems += unknown_ids(
                gt, table, "category_id", table.category, table.category_ids, unknown, told
            )
    return problems
