"""Finds every problem of the input at once, in single rows and in the results as a whole."""

from __future__ import annotations

import os

from lvdet.errors import InputError
from lvdet.files.annotation_files import load_ground_truth
from lvdet.files.collect import add_table, collected_results, new_collector
from lvdet.files.detection_files import load_detections
from lvdet.files.known_images import KnownImages
from lvdet.files.progress import Progress, track
from lvdet.plausibility.finding import Finding
from lvdet.plausibility.findings import findings
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows, pair_problems, unknown_ids
from lvdet.tables.results import Results
from lvdet.tables.values import Problem
from lvdet.threads import thread_count


def check(
    ground_truth: str | os.PathLike[str],
    detections: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
) -> list[Problem]:
    """Everything wrong with an annotation file, a results file, or the two together. Signs that the
    results as a whole are implausible come last."""
    problems, found = inspect(ground_truth, detections, progress=progress)
    source = "" if detections is None else os.fspath(detections)
    return [*problems, *(Problem(source, str(finding)) for finding in found)]


def inspect(
    ground_truth: str | os.PathLike[str],
    detections: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
) -> tuple[list[Problem], list[Finding]]:
    """The problems of single rows, and the problems of the results as a whole."""
    thread_count()  # raises for a bad setting before it could be blamed on the files
    try:
        with track(progress, "checking annotations") as update:
            gt, problems = load_ground_truth(ground_truth, update=update)
    except InputError as error:
        gt, problems = None, [Problem("", str(error))]
    if detections is None:
        return problems, []
    try:
        with track(progress, "checking results") as update:
            tables, found = load_detections(detections, KnownImages(gt), update=update)
    except InputError as error:
        tables, found = [], [Problem("", str(error))]
    problems += found
    if gt is None:
        return problems, []
    known = True
    for table in tables:
        reported = {p.row for p in found if p.source == table.source and p.row is not None}
        mismatched = list(pair_problems(gt, table, reported=reported))
        unknown = category_rows(gt, table) < 0
        problems += mismatched
        problems += unknown_ids(
            gt, table, "category_id", table.category, table.category_ids, unknown, reported
        )
        known = known and not mismatched
    if found or not known or not tables:
        return problems, []
    results = _together(gt, tables, os.fspath(detections))
    masked = results.detections.masks is not None and gt.masks is not None
    return problems, findings(gt, results, iou="segm" if masked else "bbox")


def _together(gt: GroundTruth, tables: list[Detections], source: str) -> Results:
    """The tables of several files as one."""
    if len(tables) == 1:
        return Results.of(tables[0])
    collector = new_collector((), gt)
    reports = [add_table(table, collector) for table in tables]
    return collected_results(collector, source, reports, gt)
