"""Every problem of the input at once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from lvdet.errors import InputError
from lvdet.read.annotations import load_ground_truth
from lvdet.read.detections import load_detections
from lvdet.read.files import Progress
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import Problem, category_rows, pair_problems


def check(
    ground_truth: str | os.PathLike[str],
    detections: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
) -> list[Problem]:
    """All that is wrong with an annotation file, a results file, and the two together."""
    try:
        gt, problems = load_ground_truth(ground_truth, progress=progress)
    except InputError as error:
        gt, problems = None, [Problem("", str(error))]
    if detections is None:
        return problems
    try:
        tables, found = load_detections(detections, progress=progress)
    except InputError as error:
        tables, found = [], [Problem("", str(error))]
    problems += found
    if gt is not None:
        for table in tables:
            problems += pair_problems(gt, table)
            problems += _unknown_classes(gt, table)
    return problems


def _unknown_classes(gt: GroundTruth, detections: Detections) -> Iterator[Problem]:
    for index in np.flatnonzero(category_rows(gt, detections) < 0):
        rows = np.flatnonzero(detections.category == index)
        yield Problem(
            detections.source,
            f"category_id {detections.category_ids[index]} is not in {gt.source} "
            f"({len(rows):,} detections)",
            int(rows[0]),
        )
