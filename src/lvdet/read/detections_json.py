"""Detections as a JSON list, or as lines of JSON."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from lvdet import _native
from lvdet.read.files import CHUNK, Progress, open_plain, run_reader, write_whole
from lvdet.tables.detections import Detections
from lvdet.tables.masks import Masks
from lvdet.tables.problems import unlisted
from lvdet.tables.values import Problem, value_problems
from lvdet.threads import thread_count

#: Rows formatted at a time when writing.
BLOCK = 1 << 18


def load_json(
    path: Path, *, masks: bool, threads: int | None, progress: Progress | None
) -> tuple[Detections | None, list[Problem]]:
    """The detections and what is wrong with the file; no table where its text is damaged.

    Whether it is a list or lines is seen from its first character.
    """
    source = str(path)
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size

        def read(with_masks: bool) -> dict[str, Any]:
            return run_reader(
                lambda control: _native.read_detections_json(
                    file.fileno(), with_masks, thread_count(threads), CHUNK, control
                ),
                size,
                progress,
            )

        columns = read(masks)
        if not masks and columns["rows_without_box"]:
            columns = read(True)  # the boxes are to be made from the masks
    problems = [Problem(source, what, row, byte) for row, byte, what in columns["problems"]]
    problems += unlisted(source, columns)
    if columns["failure"] is not None:
        what, byte, row = columns["failure"]
        if what == "the file is empty" and {".jsonl", ".ndjson"} & set(path.suffixes):
            return Detections.from_arrays([], [], [], np.zeros((0, 4)), source=source), []
        problems.append(Problem(source, what, row if row >= 0 else None, byte))
        return None, problems
    if not columns["usable"]:
        problems += value_problems(source, columns["score"], columns["box"])
        np.nan_to_num(columns["score"], copy=False)  # told; a table cannot hold it
    mask_columns = columns["masks"]
    detections = Detections(
        image=columns["image"],
        category=columns["category"],
        score=columns["score"],
        box=columns["box"],
        image_ids=columns["image_ids"],
        category_ids=columns["category_ids"],
        masks=None if mask_columns is None else Masks(**mask_columns),
        boxes_given=columns["rows_without_box"] < max(1, len(columns["score"])),
        source=source,
    )
    return detections, problems


def json_rows(detections: Detections, begin: int, end: int, *, separator: str) -> bytes:
    """Rows `begin` to `end` as JSON records, each followed by the separator."""
    return _native.detections_json(
        detections.image,
        detections.category,
        detections.image_ids,
        detections.category_ids,
        detections.score,
        detections.box,
        detections.boxes_given,
        None if detections.masks is None else detections.masks.columns,
        begin,
        end,
        separator,
        thread_count(),
    )


def write_json(detections: Detections, path: str | os.PathLike[str], *, lines: bool) -> None:
    """Writes a JSON list, or one record a line."""
    total = len(detections)
    with write_whole(path) as file:
        if not lines:
            file.write(b"[")
        for begin in range(0, total, BLOCK):
            end = min(begin + BLOCK, total)
            text = json_rows(detections, begin, end, separator="\n" if lines else ",")
            file.write(text if lines or end < total else text[:-1])
        if not lines:
            file.write(b"]\n")
