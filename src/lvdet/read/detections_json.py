"""Detections as a JSON list, or as lines of JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lvdet import _native
from lvdet.read.collect import FileReport
from lvdet.read.files import CHUNK, Progress, open_plain, run_reader, write_whole
from lvdet.tables.detections import Detections
from lvdet.tables.problems import unlisted
from lvdet.tables.values import Problem
from lvdet.threads import thread_count

#: Rows formatted at a time when writing.
BLOCK = 1 << 16


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
    without_box = report["rows_without_box"]
    return FileReport(
        problems,
        report["rows"],
        report["rows_with_masks"],
        without_box,
        masks_skipped=without_box > 0 and not masks,
    )


def write_json(tables: Iterable[Detections], path: str | os.PathLike[str], *, lines: bool) -> None:
    """Writes tables one after the other, as one JSON list or one record a line."""
    with write_whole(path) as file:
        between = b"" if lines else b"["
        for table in tables:
            for begin in range(0, len(table), BLOCK):
                end = min(begin + BLOCK, len(table))
                text = json_rows(table, begin, end, separator="\n" if lines else ",")
                file.write(between)
                file.write(text if lines else memoryview(text)[:-1])
                between = b"" if lines else b","
        if not lines:
            file.write(b"[]\n" if between == b"[" else b"]\n")


def json_rows(table: Detections, begin: int, end: int, *, separator: str) -> bytes:
    """Rows `begin` to `end` as JSON records, each followed by the separator."""
    return _native.detections_json(
        table.image,
        table.category,
        table.image_ids,
        table.category_ids,
        table.score,
        table.box,
        table.boxes_given,
        None if table.masks is None else table.masks.columns,
        begin,
        end,
        separator,
        thread_count(),
    )
