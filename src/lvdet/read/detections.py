"""Detections from anything that holds them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lvdet import _native
from lvdet.errors import InputError
from lvdet.read.detections_json import load_json, write_json
from lvdet.read.files import Progress, expand
from lvdet.read.records import from_columns, from_records, load_npz
from lvdet.tables.detections import Detections
from lvdet.tables.masks import Masks
from lvdet.tables.values import Problem, require
from lvdet.threads import thread_count


def read_detections(
    source: str | os.PathLike[str] | Mapping[str, Any] | list[Any] | tuple[Any, ...] | Detections,
    *,
    masks: bool = True,
    per_class: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Detections:
    """Reads detections.

    `source` is a file (JSON list, lines of JSON, either gzipped, Parquet, npz), a folder or
    pattern of such files, read in order of name; or a list of paths, a list of COCO result
    records, or a dict of arrays. With masks=False, masks are passed by where there are boxes.
    With per_class, only the best so many rows of each class are kept: by falling score, earlier
    rows first among equals; they stay in their order.
    """
    detections, _ = read_counted(
        source, masks=masks, per_class=per_class, threads=threads, progress=progress
    )
    return detections


def read_counted(
    source: str | os.PathLike[str] | Mapping[str, Any] | list[Any] | tuple[Any, ...] | Detections,
    *,
    masks: bool = True,
    per_class: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> tuple[Detections, int]:
    """The detections, and how many there were before `per_class` left the best."""
    detections = _read_all(source, masks, threads, progress)
    if per_class is None:
        return detections, len(detections)
    return _best_of_classes(detections, per_class, threads), len(detections)


def _best_of_classes(detections: Detections, per_class: int, threads: int | None) -> Detections:
    if isinstance(per_class, bool) or not isinstance(per_class, int) or per_class < 0:
        raise InputError(f"the best {per_class} of a class, expected a whole number of 0 or more")
    keep = np.ones(len(detections), dtype=np.uint8)
    _native.keep_top(
        detections.category,
        len(detections.category_ids),
        detections.score,
        per_class,
        keep,
        thread_count(threads),
    )
    return detections if keep.all() else detections[keep.view(np.bool_)]


def _read_all(
    source: str | os.PathLike[str] | Mapping[str, Any] | list[Any] | tuple[Any, ...] | Detections,
    masks: bool,
    threads: int | None,
    progress: Progress | None,
) -> Detections:
    if isinstance(source, Detections):
        return source
    if isinstance(source, Mapping):
        return from_columns(source)
    if isinstance(source, str | os.PathLike):
        return _read_files(expand(source), os.fspath(source), masks, threads, progress)
    if not isinstance(source, list | tuple):
        raise InputError(
            f"detections are a {type(source).__name__}, expected a path, a list of paths or "
            "records, or a dict of arrays"
        )
    if source and all(isinstance(item, str | os.PathLike) for item in source):
        files = [path for item in source for path in expand(item)]
        return _read_files(files, "detections", masks, threads, progress)
    return from_records(source)


def load_detections(
    source: str | os.PathLike[str], *, progress: Progress | None = None
) -> tuple[list[Detections], list[Problem]]:
    """The tables of all files, and everything that is wrong with them."""
    tables, problems = [], []
    for path in expand(source):
        try:
            table, found = _load(path, True, None, progress)
        except InputError as error:
            problems.append(Problem("", str(error)))
            continue
        problems += found
        if table is not None:
            tables.append(table)
    return tables, problems


def write_detections(detections: Detections, path: str | os.PathLike[str]) -> None:
    """Writes JSON, lines of JSON (.jsonl, .ndjson) or Parquet, by the file's ending."""
    ending = require_ending(path)
    if ending == ".parquet":
        from lvdet.read.parquet import write_parquet

        write_parquet(detections, path)
    else:
        write_json(detections, path, lines=ending != ".json")


def require_ending(path: str | os.PathLike[str]) -> str:
    """The ending of a file that `write_detections` can write."""
    ending = Path(path).suffix.lower()
    if ending not in (".json", ".jsonl", ".ndjson", ".parquet"):
        raise InputError(
            f"{os.fspath(path)}: unknown ending {ending!r}, expected .json, .jsonl, .ndjson or "
            ".parquet"
        )
    return ending


def _read_files(
    paths: list[Path], name: str, masks: bool, threads: int | None, progress: Progress | None
) -> Detections:
    tables = []
    for path in paths:
        table, problems = _load(path, masks, threads, progress)
        require(iter(problems))
        assert table is not None
        tables.append(table)
    if len(tables) == 1:
        return tables[0]
    return _concatenate(tables, name)


def _load(
    path: Path, masks: bool, threads: int | None, progress: Progress | None
) -> tuple[Detections | None, list[Problem]]:
    ending = path.suffix.lower()
    if ending in (".parquet", ".pq"):
        from lvdet.read.parquet import load_parquet

        return load_parquet(path, masks=masks, threads=threads, progress=progress)
    if ending == ".npz":
        return load_npz(path), []
    return load_json(path, masks=masks, threads=threads, progress=progress)


def _concatenate(tables: list[Detections], name: str) -> Detections:
    """One table of all rows in order."""
    tables = [table for table in tables if len(table)] or tables[:1]
    with_masks = [table.masks is not None for table in tables]
    if any(with_masks) and not all(with_masks):
        raise InputError(
            f"{tables[with_masks.index(False)].source} has no masks, but "
            f"{tables[with_masks.index(True)].source} has"
        )
    merged: dict[str, Any] = {}
    for column, ids in (("image", "image_ids"), ("category", "category_ids")):
        known: dict[int, int] = {}
        parts = []
        for table in tables:
            renamed = [
                known.setdefault(value, len(known)) for value in getattr(table, ids).tolist()
            ]
            parts.append(np.array(renamed, dtype=np.int32)[getattr(table, column)])
        merged[column] = np.concatenate(parts)
        merged[ids] = np.array(list(known), dtype=np.int64)
    return replace(
        tables[0],
        **merged,
        score=np.concatenate([table.score for table in tables]),
        box=np.concatenate([table.box for table in tables]),
        masks=(
            Masks.concatenate([table.masks for table in tables if table.masks is not None])
            if with_masks[0]
            else None
        ),
        boxes_given=any(table.boxes_given for table in tables),
        source=name,
    )
