"""Detections as a JSON list or as JSON lines."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import IO, Any

from lvdet import _native
from lvdet.files.collect import FileReport, collected_detections, new_collector
from lvdet.files.known_images import NO_IMAGES, KnownImages
from lvdet.files.opening import CHUNK, open_plain, run_reader, watched
from lvdet.files.progress import Update
from lvdet.files.remote_path import InputPath
from lvdet.files.writing import write_whole
from lvdet.tables.detections import Detections
from lvdet.tables.problems import unlisted
from lvdet.tables.values import Problem, require
from lvdet.threads import thread_count

#: Rows formatted at a time when writing.
BLOCK = 1 << 16
#: Bytes of text that become a table when a file is read as a stream. A record has fifty bytes or
#: more, so this is a third of a million rows at most; a table takes about as much memory.
STRETCH = 1 << 24


def collect_json(
    path: InputPath,
    collector: _native.Collector,
    images: KnownImages,
    *,
    masks: bool,
    update: Update | None,
) -> FileReport:
    """Adds the detections of a file."""
    with open_plain(path) as file:
        report, _ = _read(path, file, collector, images, masks, update)
    return report


def json_tables(
    path: InputPath, images: KnownImages = NO_IMAGES, *, masks: bool, update: Update | None
) -> Iterator[Detections]:
    """The detections of a file, in pieces."""
    place: _native.FilePlace | None = None
    with_masks, ended = masks, False
    with open_plain(path) as file:
        while not ended:
            collector = new_collector()
            report, reached = _read(
                path, file, collector, images, with_masks, update, place, STRETCH
            )
            require(iter(report.problems))
            if report.masks_skipped:
                with_masks = True  # this stretch again, and so on
                continue
            if report.rows:
                yield collected_detections(collector, str(path), [report], masks=masks)
            place, ended = reached, reached is None


def _read(
    path: InputPath,
    file: IO[bytes],
    collector: _native.Collector,
    images: KnownImages,
    masks: bool,
    update: Update | None,
    place: _native.FilePlace | None = None,
    most: int = 2**63 - 1,
) -> tuple[FileReport, _native.FilePlace | None]:
    """Adds about `most` bytes of detections, from `place` or from the beginning; returns what was
    found and where to continue, None at the end."""
    size = os.fstat(file.fileno()).st_size
    found = run_reader(
        lambda control: collector.read_json(
            file.fileno(),
            masks,
            thread_count(),
            CHUNK,
            watched(file, control),
            place,
            most,
            images.names,
        ),
        size,
        update,
        0 if place is None else place.byte,
    )
    reached = found["place"]
    if update is not None:
        update(size if reached is None else reached.byte, size)
    return _report(path, found, masks), reached


def _report(path: InputPath, report: dict[str, Any], masks: bool) -> FileReport:
    """What the native reader found."""
    source = str(path)
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
    """Writes tables in order, as one JSON list or one record per line."""
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
