"""Reads and writes detections in any supported format."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from importlib import import_module
from typing import IO, Any, NamedTuple, cast

from lvdet import _native
from lvdet.errors import InputError, LvdetError, MissingPackageError
from lvdet.files.arriving_file import ArrivingFile
from lvdet.files.collect import (
    Cap,
    FileReport,
    MaskedFiles,
    add_table,
    collected_detections,
    collected_results,
    new_collector,
)
from lvdet.files.detections_json import collect_json, write_json
from lvdet.files.known_images import NO_IMAGES, ImageSource, KnownImages
from lvdet.files.opening import GZIP, buffered, expand, shares
from lvdet.files.progress import Progress, Update, track
from lvdet.files.records import from_columns, from_records, load_npz
from lvdet.files.remote_path import InputPath, RemotePath, in_turn
from lvdet.files.writing import require_ending
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results
from lvdet.tables.values import Problem, require

#: Bytes searched to see whether a file has masks.
_HEAD = 1 << 16
#: The extensions of Parquet files.
PARQUET = (".parquet", ".pq")


class NamedFiles(NamedTuple):
    """Files to read in order, and the name that messages use for all of them."""

    paths: list[InputPath]
    name: str


#: The extensions of the formats that can be written.
WRITTEN = (".json", ".jsonl", ".ndjson", ".parquet")


def named_files(source: object) -> NamedFiles | None:
    """The files that a path or a list of paths refers to; None if it is neither."""
    if isinstance(source, NamedFiles):
        return source
    if isinstance(source, str | os.PathLike):
        return NamedFiles(expand(source), os.fspath(source))
    if (
        isinstance(source, list | tuple)
        and source
        and all(isinstance(item, str | os.PathLike) for item in source)
    ):
        return NamedFiles([path for item in source for path in expand(item)], "detections")
    return None


def read_detections(
    source: str | os.PathLike[str] | Mapping[str, Any] | list[Any] | tuple[Any, ...] | Detections,
    *,
    masks: bool = True,
    dets_per_class: int | None = None,
    dets_per_image: int | None = None,
    images: ImageSource = None,
    progress: Progress | None = None,
) -> Detections:
    """Reads detections.

    `source` is a file (JSON list, lines of JSON, either gzipped, Parquet, npz), a folder or pattern
    of such files, read in order of name; a list of paths, a list of COCO result records, or a dict
    of arrays. With masks=False, masks are skipped if there are boxes. dets_per_class keeps the
    highest-scored rows of each class, dets_per_image those of each image, and both together keep
    what either keeps. Among equal scores the earlier row wins; the rows kept stay in their order.
    The limits apply while reading, so files may be far larger than memory.

    images: the annotations; needed if image ids are file names, or if boxes are fractions of the
        image size
    """
    known = KnownImages.of(images)
    with track(progress, "reading results") as update:
        detections, _ = read_counted(
            source,
            masks=masks,
            dets_per_class=dets_per_class,
            dets_per_image=dets_per_image,
            images=known,
            update=update,
        )
    return detections


def read_counted(
    source: str | os.PathLike[str] | Mapping[str, Any] | list[Any] | tuple[Any, ...] | Detections,
    *,
    masks: bool = True,
    dets_per_class: int | None = None,
    dets_per_image: int | None = None,
    images: KnownImages = NO_IMAGES,
    update: Update | None = None,
) -> tuple[Detections, int]:
    """The detections, and their number before the limits were applied."""
    limits = ((False, dets_per_class), (True, dets_per_image))
    caps = [Cap(by_image, limit) for by_image, limit in limits if limit is not None]
    files = named_files(source)
    if files is not None:
        collector, reports = _collect(
            files.paths, lambda: new_collector(caps), images, masks, update
        )
        found = sum(report.rows for report in reports)
        return collected_detections(collector, files.name, reports, masks=masks), found
    if isinstance(source, Detections):
        table = source
    elif isinstance(source, Mapping):
        table = from_columns(source, images=images)
    elif isinstance(source, list | tuple):
        table = from_records(source, images=images)
    else:
        raise InputError(
            f"detections are of type {type(source).__name__}, expected a path, a list of paths or "
            "records, or a dict of arrays"
        )
    if not caps:
        return table, len(table)
    collector = new_collector(caps)
    report = add_table(table, collector)
    best = collected_detections(collector, table.source, [report])
    if table.file_row is not None:
        best = replace(best, file_row=table.file_row[best.file_row])
    return best, len(table)


def read_results(
    files: NamedFiles,
    gt: GroundTruth,
    caps: Sequence[Cap] = (),
    *,
    masks: bool = True,
    every_box: bool = False,
    room: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Reads what evaluating against `gt` needs: image, class and score of every row, and boxes and
    masks of the rows in cells that count (with `every_box`, of all rows); of both, only the rows
    that the caps can keep. Files of up to `room` rows are read whole."""

    def collector_of_pair() -> _native.Collector:
        return new_collector(caps, gt, every_box=every_box, room=room)

    with track(progress, "reading results") as update:
        collector, reports = _collect(
            files.paths, collector_of_pair, KnownImages(gt), masks, update
        )
    return collected_results(collector, files.name, reports, gt, masks=masks)


def load_detections(
    source: str | os.PathLike[str],
    images: KnownImages = NO_IMAGES,
    *,
    update: Update | None = None,
) -> tuple[list[Detections], list[Problem]]:
    """The tables of all files, and everything wrong with them."""
    tables, problems = [], []
    with closing(in_turn(expand(source), begin_arriving(masks=True))) as arriving:
        for path in arriving:
            collector = new_collector()
            try:
                report = _add_file(path, collector, images, True, update)
            except InputError as error:
                problems.append(Problem("", str(error)))
                continue
            problems += report.problems
            if not report.damaged:
                tables.append(collected_detections(collector, str(path), [report]))
    return tables, problems


def prepare(files: NamedFiles) -> None:
    """Starts importing what reading the files needs, while something else is read: importing Arrow
    takes as long as reading the annotations."""
    if any(path.suffix.lower() in PARQUET for path in files.paths):
        with suppress(RuntimeError):  # the system allows no more threads
            threading.Thread(target=_import_arrow).start()


def _import_arrow() -> None:
    with suppress(MissingPackageError):  # reported when the file is read
        import_module("lvdet.files.parquet").import_arrow()


def may_have_masks(files: NamedFiles) -> bool:
    """False if the beginning of the first file has no masks, although later rows may."""
    first = files.paths[0]
    if first.suffix.lower() in PARQUET:
        from lvdet.files.parquet import holds_masks

        return holds_masks(first)
    if not first.is_file():  # looking into a pipe would consume it
        return True
    try:
        with ExitStack() as stack:
            file = _opened_to_look(first, stack)
            head = file.read(_HEAD)
            if head[:2] == GZIP:
                from lvdet.files.spooling import unpacked_head

                file.seek(0)
                head = unpacked_head(file, _HEAD)
    except OSError:
        return False  # reported when the file is read
    return b'"segmentation"' in head


def _opened_to_look(path: InputPath, stack: ExitStack) -> IO[bytes]:
    """A file of which the beginning is to be read. What arrives of a remote one is kept."""
    if isinstance(path, RemotePath):
        return buffered(cast(IO[bytes], ArrivingFile(path.arriving())))
    return stack.enter_context(open(path, "rb"))


def begin_arriving(*, masks: bool) -> Callable[[RemotePath], None]:
    """A function that begins to fetch what will be read of a file; if not masks, without those that
    are columns of their own."""

    def begin(path: RemotePath) -> None:
        if path.suffix.lower() not in PARQUET:
            path.arriving().want_all()
            return
        from lvdet.files.parquet import begin_columns

        begin_columns(path, masks=masks)

    return begin


def require_format(path: str | os.PathLike[str]) -> str:
    """The extension of a file to write; raises if it names no format, or one that needs what is not
    installed."""
    ending = require_ending(path, WRITTEN)
    if ending == ".parquet":
        from lvdet.files.parquet import import_arrow

        import_arrow("writing Parquet")
    return ending


def write_detections(detections: Detections, path: str | os.PathLike[str]) -> None:
    """Writes JSON, JSON lines (.jsonl, .ndjson) or Parquet, according to the file's extension."""
    write_tables([detections], path)


def write_tables(tables: Iterable[Detections], path: str | os.PathLike[str]) -> int:
    """Writes tables into one file, in the same formats, as they arrive; returns the number of rows.

    The file appears once it is complete, and not at all if a table cannot be made. In JSON, each
    table decides whether its rows have boxes and masks; in Parquet, the first table with rows
    decides for all.
    """
    ending = require_format(path)
    rows = 0

    def counted() -> Iterator[Detections]:
        nonlocal rows
        for table in tables:
            rows += len(table)
            yield table

    if ending == ".parquet":
        from lvdet.files.parquet import write_parquet

        write_parquet(counted(), path)
    else:
        write_json(counted(), path, lines=ending != ".json")
    return rows


def _collect(
    paths: list[InputPath],
    new: Callable[[], _native.Collector],
    images: KnownImages,
    masks: bool,
    update: Update | None,
) -> tuple[_native.Collector, list[FileReport]]:
    """Collects the rows of all files in order."""
    # A source that can be read only once is read with everything that may be needed.
    masks = masks or not all(path.is_file() for path in paths)
    collector, reports = new(), []
    with closing(in_turn(paths, begin_arriving(masks=masks))) as arriving:
        for path, share in zip(arriving, shares(paths, update), strict=True):
            report = _add_file(path, collector, images, masks, share)
            require(iter(report.problems))
            if report.masks_skipped:
                del collector
                return _collect(paths, new, images, True, update)
            reports.append(report)
    masked = MaskedFiles()
    for path, report in zip(paths, reports, strict=True):
        if report.rows:
            masked.note(path, report.rows_with_masks > 0)
    return collector, reports


def _add_file(
    path: InputPath,
    collector: _native.Collector,
    images: KnownImages,
    masks: bool,
    update: Update | None,
) -> FileReport:
    ending = path.suffix.lower()
    try:
        if ending in PARQUET:
            from lvdet.files.parquet import collect_parquet

            return collect_parquet(path, collector, images, masks=masks, update=update)
        if ending == ".npz":
            return add_table(load_npz(path, images), collector)
        return collect_json(path, collector, images, masks=masks, update=update)
    except _native.CannotHold as error:
        raise LvdetError(f"{path}: {error}") from None
