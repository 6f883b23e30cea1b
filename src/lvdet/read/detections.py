"""Detections from anything that holds them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lvdet.errors import InputError
from lvdet.read.detections_json import load_json, write_json
from lvdet.read.files import Progress, expand
from lvdet.read.records import from_columns, from_records, load_npz
from lvdet.tables.detections import Detections
from lvdet.tables.masks import Masks
from lvdet.tables.values import Problem, require


def read_detections(
    source: str | os.PathLike[str] | Mapping[str, Any] | list[Any] | tuple[Any, ...] | Detections,
    *,
    masks: bool = True,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Detections:
    """Reads detections.

    `source` is a file (JSON list, lines of JSON, either gzipped, Parquet, npz), a folder or
    pattern of such files, read in order of name; or a list of paths, a list of COCO result
    records, or a dict of arrays. With masks=False, masks are passed by where there are boxes.
    """
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
    ending = Path(path).suffix.lower()
    if ending == ".json":
        write_json(detections, path, lines=False)
    elif ending in (".jsonl", ".ndjson"):
        write_json(detections, path, lines=True)
    elif ending == ".parquet":
        from lvdet.read.parquet import write_parquet

        write_parquet(detections, path)
    else:
        raise InputError(
            f"{os.fspath(path)}: unknown ending {ending!r}, expected .json, .jsonl, .ndjson or "
            ".parquet"
        )


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
