"""Detections as a JSON list, or as lines of JSON."""

from __future__ import annotations

import os
from pathlib import Path

from lvdet import _native
from lvdet.read.collect import FileReport
from lvdet.read.files import CHUNK, Progress, open_plain, run_reader, write_whole
from lvdet.tables.detections import Detections
from lvdet.tables.problems import unlisted
from lvdet.tables.values import Problem
from lvdet.threads import thread_count

#: Rows formatted at a time when writing.
BLOCK = 1 << 18


def collect_json(
    path: Path,
    collector: _native.Collector,
    *,
    masks: bool,
    threads: int | None,
    progress: Progress | None,
) -> FileReport:
    """Adds the detections of a file. Whether it is a list or lines is seen from its first
    character."""
    source = str(path)
    with open_plain(path) as file:
        report = run_reader(
            lambda control: collector.read_json(
                file.fileno(), masks, thread_count(threads), CHUNK, control
            ),
            os.fstat(file.fileno()).st_size,
            progress,
        )
    problems = [Problem(source, what, row, byte) for row, byte, what in report["problems"]]
    problems += unlisted(source, report)
    if report["failure"] is not None:
        what, byte, row = report["failure"]
        if what != "the file is empty" or not {".jsonl", ".ndjson"} & set(path.suffixes):
            problems.append(Problem(source, what, row if row >= 0 else None, byte))
            return FileReport(problems, damaged=True)
    return FileReport(
        problems, report["rows"], report["rows_with_masks"], report["rows_without_box"]
    )


def write_json(detections: Detections, path: str | os.PathLike[str], *, lines: bool) -> None:
    """Writes a JSON list, or one record a line."""
    masks = None if detections.masks is None else detections.masks.columns
    total = len(detections)
    with write_whole(path) as file:
        if not lines:
            file.write(b"[")
        for begin in range(0, total, BLOCK):
            end = min(begin + BLOCK, total)
            text = _native.detections_json(
                detections.image,
                detections.category,
                detections.image_ids,
                detections.category_ids,
                detections.score,
                detections.box,
                detections.boxes_given,
                masks,
                begin,
                end,
                "\n" if lines else ",",
                thread_count(),
            )
            file.write(text if lines or end < total else text[:-1])
        if not lines:
            file.write(b"]\n")
