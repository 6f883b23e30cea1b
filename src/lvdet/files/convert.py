"""Converts results between formats."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from lvdet.errors import InputError
from lvdet.files.detection_files import (
    PARQUET,
    named_files,
    read_counted,
    require_format,
    write_tables,
)
from lvdet.files.known_images import ImageSource, KnownImages
from lvdet.files.parquet import LateColumnsError, declared_box_format
from lvdet.files.progress import Progress, track
from lvdet.files.repair import Repair
from lvdet.files.stream import detection_tables
from lvdet.files.table_source import TableSource
from lvdet.tables.detections import Detections


def convert(
    source: str | os.PathLike[str] | list[str | os.PathLike[str]] | TableSource,
    target: str | os.PathLike[str],
    *,
    dets_per_class: int | None = None,
    dets_per_image: int | None = None,
    masks: bool = True,
    box_format: str = "xywh",
    images: ImageSource = None,
    category_map: Mapping[int, int] | None = None,
    change: Callable[[Detections], Detections] | None = None,
    progress: Progress | None = None,
) -> tuple[int, int]:
    """Writes what `read_detections` reads; returns the number of rows written and read.

    With masks=False only boxes are written, computed from the masks if there are no boxes. If all
    rows are kept, reading and writing overlap.

    dets_per_class, dets_per_image: write only the best detections of each class, or of each image;
        with both, those that satisfy either limit
    box_format: the box format of the source (see `BOX_FORMATS`)
    images: the annotations; needed if image ids are file names or boxes are fractions of the image
        size
    category_map: replacements of class ids; other ids are kept
    change: applied to each table before it is written
    """
    require_format(target)
    known = KnownImages.of(images)
    repair = Repair.of(_left_to_repair(source, box_format), known, category_map or {})
    if dets_per_class is not None and len(set(repair.ids.values())) < len(repair.ids):
        raise InputError("the category map merges classes, which cannot be combined with a limit")

    def changed(table: Detections) -> Detections:
        table = repair.applied(table)
        table = table if masks else replace(table, masks=None, boxes_given=True)
        return table if change is None else change(table)

    if isinstance(source, TableSource):
        found = 0

        def counted() -> Iterator[Detections]:
            nonlocal found
            for table, rows in source.tables(
                masks=masks,
                dets_per_class=dets_per_class,
                dets_per_image=dets_per_image,
                images=known,
                change=changed,
                progress=progress,
            ):
                found += rows
                yield table

        return write_tables(counted(), target), found
    if dets_per_class is None and dets_per_image is None:
        try:
            with track(progress, "converting") as update:
                tables = detection_tables(source, masks=masks, images=known, update=update)
                written = write_tables(map(changed, tables), target)
            return written, written
        except LateColumnsError:  # the table of all rows knows from the beginning
            if not _can_be_read_again(source):
                raise
    with track(progress, "converting") as update:
        detections, found = read_counted(
            source,
            masks=masks,
            dets_per_class=dets_per_class,
            dets_per_image=dets_per_image,
            images=known,
            update=update,
        )
    written = write_tables([changed(detections)], target)
    return written, found


def _left_to_repair(source: object, box_format: str) -> str:
    """The box format still to convert: Parquet files that declare theirs are read accordingly."""
    files = source if isinstance(source, TableSource) else named_files(source)
    if box_format == "xywh" or files is None:
        return box_format
    declared = {
        path: declared_box_format(path)
        for path in files.paths
        if path.suffix.lower() in PARQUET and path.is_file()
    }
    for path, name in declared.items():
        if name not in ("xywh", box_format):
            raise InputError(f"{path} declares its boxes as {name}, not {box_format}")
    if "xywh" in declared.values() or len(declared) < len(files.paths):
        for path, name in declared.items():
            if name != "xywh":
                raise InputError(f"{path} declares its boxes as {name}, but other files do not")
        return box_format
    return "xywh"


def _can_be_read_again(source: object) -> bool:
    files = named_files(source)
    return files is not None and all(path.is_file() for path in files.paths)
