"""Results files as a stream of tables, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from lvdet import _native
from lvdet.errors import InputError, LvdetError
from lvdet.files.collect import MaskedFiles
from lvdet.files.detection_files import begin_arriving, named_files
from lvdet.files.detections_json import json_tables
from lvdet.files.known_images import NO_IMAGES, KnownImages
from lvdet.files.opening import shares
from lvdet.files.progress import Update
from lvdet.files.records import load_npz
from lvdet.files.remote_path import InputPath, in_turn
from lvdet.tables.detections import Detections
from lvdet.tables.masks import NONE
from lvdet.threads import thread_count

#: Rows of a table made of a NumPy archive.
ROWS = 1 << 18


def detection_tables(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    masks: bool = True,
    images: KnownImages = NO_IMAGES,
    update: Update | None = None,
) -> Iterator[Detections]:
    """Reads detections in order, as tables of a few megabytes each: the rows of all
    files, in their order, however many they are.

    `source` is a file, folder or pattern, or a list of paths, as `read_detections` takes them;
    images: those that texts may name. (A NumPy archive is loaded whole.) A table has rows of one
    file, at least one, and names that file and their places in it; image_ids, category_ids, masks
    and boxes_given speak of its own rows. With masks=False, masks are skipped where there are
    boxes: they are read, and kept, only in tables that need boxes made from them.

    What cannot be used is refused as by `read_detections`, when it is reached: tables before it
    have been given out by then.
    """
    files = named_files(source)
    if files is None:
        raise InputError(
            f"detections are of type {type(source).__name__}, expected a path or a list of paths"
        )
    thread_count()  # a number that cannot be is refused at once
    return _tables(files.paths, masks, images, shares(files.paths, update))


def _tables(
    paths: list[InputPath], masks: bool, images: KnownImages, update: list[Update | None]
) -> Iterator[Detections]:
    masked = MaskedFiles()
    with closing(in_turn(paths, begin_arriving(masks=masks))) as arriving:
        for path, share in zip(arriving, update, strict=True):
            rows, has_masks = 0, False
            for table in _tables_of(path, masks, images, share):
                if masks and not has_masks and table.masks is not None:
                    has_masks = bool((table.masks.kind != NONE).any())
                    if has_masks:
                        masked.note(path, True)
                if table.file_row is None:
                    table = replace(table, file_row=np.arange(rows, rows + len(table)))
                yield table
                rows += len(table)
            if masks and rows:
                masked.note(path, has_masks)


def _tables_of(
    path: InputPath, masks: bool, images: KnownImages, update: Update | None
) -> Iterator[Detections]:
    """The tables of one file."""
    ending = path.suffix.lower()
    try:
        if ending in (".parquet", ".pq"):
            from lvdet.files.parquet import parquet_tables

            yield from parquet_tables(path, images, masks=masks, update=update)
        elif ending == ".npz":
            table = load_npz(path, images)
            for begin in range(0, len(table), ROWS):
                yield table[begin : begin + ROWS]
        else:
            yield from json_tables(path, images, masks=masks, update=update)
    except _native.CannotHold as error:
        raise LvdetError(f"{path}: {error}") from None
