"""Detections as Parquet.

Columns: image_id, category_id, score, and x, y, w, h (or one list column `bbox`). Masks, if any, in
mask (bytes), mask_kind, mask_height and mask_width as in `lvdet.tables.masks.Masks`, or in one
column `segmentation` of {size, counts} records. Files with one row per image are read by
`parquet_lists`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from itertools import chain, islice
from threading import Thread
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.bounds import require_inflation
from lvdet.errors import InputError
from lvdet.extras import extra
from lvdet.files.arriving_file import ArrivingFile
from lvdet.files.collect import FileReport, RowPlaces, collected_detections, new_collector
from lvdet.files.known_images import NO_IMAGES, KnownImages
from lvdet.files.opening import size_of
from lvdet.files.parquet_batch import Batch, box_format_of, plain_boxes
from lvdet.files.parquet_columns import (
    has_texts,
    read_boxes,
    read_images,
    read_masks,
    read_reals,
    read_whole,
)
from lvdet.files.parquet_layout import Group, read_layout
from lvdet.files.parquet_lists import MASK_LISTS, ListColumns
from lvdet.files.progress import Update
from lvdet.files.remote_path import InputPath, RemotePath
from lvdet.files.writing import write_whole
from lvdet.tables.detections import Detections, masks_to_boxes
from lvdet.tables.masks import LARGEST_MASK, NONE, no_masks
from lvdet.tables.values import MOST_PROBLEMS, Problem, more_problems, require
from lvdet.threads import thread_count

#: Rows of a row group when writing, and bytes at which it ends where tables are smaller.
ROW_GROUP, GROUP_BYTES = 1 << 18, 1 << 25
#: Rows decoded at a time when reading, and where they carry masks, of which a file may hold one for
#: many rows; fewer where their masks take more bytes than this.
BATCH, MASK_BATCH, MASK_BYTES = 1 << 17, 1 << 10, 1 << 26
_BUFFER = 1 << 20
#: Rows for which room is taken at once on a file's word.
_EXPECTED = 1 << 24
_BOX = ("x", "y", "w", "h")
_MASK = ("mask", "mask_kind", "mask_height", "mask_width")
#: Columns whose values recur. Dictionaries of others take most of the time, for nothing.
_REPEATED = ("image_id", "category_id", "mask_kind", "mask_height", "mask_width")


def collect_parquet(
    path: InputPath,
    collector: _native.Collector,
    images: KnownImages,
    *,
    masks: bool,
    update: Update | None,
) -> FileReport:
    """Adds the detections of a file, batch by batch."""
    with _opened(path) as file, ExitStack() as stack:
        return _collect(file, path, collector, images, masks, update, stack)


def parquet_tables(
    path: InputPath, images: KnownImages = NO_IMAGES, *, masks: bool, update: Update | None
) -> Iterator[Detections]:
    """The detections of a file, one batch at a time. If the file has mask columns, every table has
    masks."""
    source = str(path)
    with _opened(path) as file:
        for batch in _batches(file, path, images, masks, update):
            collector = new_collector()
            require(batch.add_to(collector, source))
            table = collected_detections(collector, source, [batch.report], masks=masks)
            if batch.may_have_masks and table.masks is None:
                table = replace(table, masks=no_masks(len(table)))
            yield table if batch.row is None else replace(table, file_row=batch.row)


def import_arrow(what: str = "reading Parquet") -> None:
    """Imports pyarrow, which takes time the first time; `what` begins the error if it is not
    installed."""
    with extra("parquet", what):
        import pyarrow.parquet  # noqa: F401


@contextmanager
def _opened(path: InputPath) -> Iterator[Any]:
    import_arrow()
    import pyarrow as pa

    try:
        # Read through a small buffer: a row group may be the whole file. A long text that many
        # rows share stays one.
        with ExitStack() as stack:
            if isinstance(path, RemotePath):
                stack.enter_context(path.reading())
            file = stack.enter_context(_parquet_file(path))
            if has_texts(file.schema_arrow):
                file = stack.enter_context(_parquet_file(path, read_dictionary=["image_id"]))
            yield file
    except MemoryError:  # Arrow's own is one of its errors too
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{path}: invalid Parquet file: {text}") from None


def _parquet_file(path: InputPath, **options: Any) -> Any:
    import pyarrow.parquet as pq

    source = ArrivingFile(path.arriving()) if isinstance(path, RemotePath) else path
    return pq.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER, **options)


def begin_columns(path: RemotePath, *, masks: bool) -> None:
    """Begins to fetch the columns that will be read. That takes the end of the file, which a thread
    waits for."""

    def begin() -> None:
        with suppress(Exception), _parquet_file(path) as file:  # said when it is read
            columns = _Columns.of(file.schema_arrow, str(path), masks=masks)
            path.arriving().want(_spans(_groups(path, columns.names, pages=False)))

    with suppress(RuntimeError):  # the system allows no more threads
        Thread(target=begin).start()


def _spans(groups: list[Group]) -> Iterator[tuple[int, int]]:
    """Where the columns are, as (begin, count), one row group after another."""
    for group in groups:
        yield from sorted((chunk.begin, chunk.packed) for chunk in group.chunks)


def declared_box_format(path: InputPath) -> str:
    """The box format that a file declares, for columns that do not name it."""
    with _opened(path) as file:
        _, box_columns, _ = _Columns.of(file.schema_arrow, str(path), masks=False)
        return "xywh" if box_columns == [*_BOX] else box_format_of(file.schema_arrow, str(path))


def holds_masks(path: InputPath) -> bool:
    """Whether the file has mask columns; False if it cannot be read."""
    import_arrow()
    import pyarrow as pa

    try:
        with _parquet_file(path) as file:
            names = set(file.schema_arrow.names)
    except (pa.ArrowException, UnicodeDecodeError, OSError):
        return False
    return set(_MASK) <= names or not names.isdisjoint(MASK_LISTS)


def _collect(
    file: Any,
    path: InputPath,
    collector: _native.Collector,
    images: KnownImages,
    masks: bool,
    update: Update | None,
    stack: ExitStack,
) -> FileReport:
    source = str(path)
    problems: list[Problem] = []
    rows = with_masks = without_box = unlisted = 0
    begins: list[NDArray[np.int64]] = []
    numbers: list[NDArray[np.int32]] = []

    def add(batch: Batch) -> None:
        nonlocal unlisted
        found = batch.add_to(collector, source)
        problems.extend(islice(found, MOST_PROBLEMS - len(problems)))
        unlisted += sum(1 for _ in found)

    adder = stack.enter_context(ThreadPoolExecutor(1)) if thread_count() > 1 else None
    added: Future[None] | None = None
    # One batch is added while the next is decoded.
    for batch in _batches(file, path, images, masks, update):
        if rows == 0:
            lists = ListColumns.of(file.schema_arrow, source, masks=masks)
            count = file.metadata.num_rows
            if lists is not None:
                count = lists.count(_groups(path, [lists.scores], pages=False))
            collector.expect(min(count, _EXPECTED))
        if added is not None:
            added.result()
            added = None
        try:
            added = None if adder is None else adder.submit(add, batch)
        except RuntimeError:  # the system allows no more threads
            adder = None
        if added is None:
            add(batch)
        report = batch.report
        if batch.row is not None:
            first = np.flatnonzero(np.diff(batch.row, prepend=-1))
            begins.append(rows + first)
            numbers.append(batch.row[first])
        rows += report.rows
        with_masks += report.rows_with_masks
        without_box += report.rows_without_box
    if added is not None:
        added.result()
    if unlisted:
        problems.append(more_problems(source, unlisted))
    places = RowPlaces(np.concatenate(begins), np.concatenate(numbers)) if begins else None
    return FileReport(problems, rows, with_masks, without_box, places=places)


def _batches(
    file: Any, path: InputPath, images: KnownImages, masks: bool, update: Update | None
) -> Iterator[Batch]:
    """The detections of a file, in batches."""
    source = str(path)
    total = file.metadata.num_rows
    if total < 0:
        raise InputError(f"{source}: invalid Parquet file: negative size")
    lists, box_columns, mask_columns = columns = _Columns.of(file.schema_arrow, source, masks=masks)
    layout = _layout(path, columns.names)
    if lists is not None:
        rows = lists.images_at_a_time(layout, source, BATCH, MASK_BATCH, MASK_BYTES)
    else:
        rows = _mask_batch(layout, mask_columns, source) if mask_columns else BATCH
        box_format = box_format_of(file.schema_arrow, source)
    at = 0
    # Arrow's own threads cost more than they save.
    for decoded in file.iter_batches(rows, columns=columns.names, use_threads=False):
        if lists is not None:
            yield from lists.batches(decoded, source, at, images, BATCH)
        else:
            yield _batch(decoded, box_columns, mask_columns, box_format, images, source, at)
        at += decoded.num_rows
        if update is not None:
            update(at, total)
    if at != total:
        raise InputError(f"{source}: has {at:,} rows, but its metadata says {total:,}")


def _layout(path: InputPath, columns: list[str]) -> list[Group]:
    """The row groups. Raises if they unpack to too much: few bytes can stand for many equal
    rows."""
    groups = _groups(path, columns, pages=True)
    unpacked = sum(group.size(columns) for group in groups)
    with _bytes_of(path) as file:
        require_inflation(str(path), size_of(file), unpacked)
    return groups


def _groups(path: InputPath, columns: list[str], *, pages: bool) -> list[Group]:
    with _bytes_of(path) as file:
        return read_layout(file, str(path), columns, pages=pages)


def _bytes_of(path: InputPath) -> AbstractContextManager[IO[bytes]]:
    if isinstance(path, RemotePath):
        return nullcontext(cast(IO[bytes], ArrivingFile(path.arriving())))
    return open(path, "rb")


def _mask_batch(layout: list[Group], columns: list[str], source: str) -> int:
    """The number of rows to decode at a time. Rejects oversized masks before they are decoded."""
    rows = MASK_BATCH
    for number, group in enumerate(layout):
        mean = max(group.size(columns) // max(group.rows, 1), 1)
        if mean > LARGEST_MASK:
            raise InputError(
                f"{source}: masks of row group {number} take {mean:,} bytes per row, expected at "
                f"most {LARGEST_MASK:,}"
            )
        rows = min(rows, max(MASK_BYTES // mean, 1))
    return rows


def _batch(
    decoded: Any,
    box_columns: list[str],
    mask_columns: list[str],
    box_format: str,
    images: KnownImages,
    source: str,
    at: int,
) -> Batch:
    image = read_images(decoded.column("image_id"), source, at, images)
    category = read_whole(decoded.column("category_id"), "category_id", source, at)
    score = read_reals(decoded.column("score"), "score", source, at)
    masks = read_masks(decoded, mask_columns, source, at) if mask_columns else None
    if masks is not None and not masks.kind.any():
        masks = None
    box: NDArray[np.float64] | tuple[NDArray[np.float64], ...]
    if box_columns == ["bbox"]:
        box = read_boxes(decoded.column("bbox"), source, at)
        box = plain_boxes(box, box_format, image, images, source)
    elif box_columns:
        box = tuple(read_reals(decoded.column(name), name, source, at) for name in box_columns)
    else:
        missing = np.arange(len(score)) if masks is None else np.flatnonzero(masks.kind == NONE)
        if len(missing):
            raise InputError(f"{source}, row {at + missing[0]:,}: has neither bbox nor mask")
        box = np.zeros((0, 4)) if masks is None else masks_to_boxes(masks)
    return Batch(at, image, category, score, box, masks, bool(mask_columns), bool(box_columns))


def _columns(names: set[str], source: str) -> tuple[list[str], list[str]]:
    """The columns of boxes and of masks that the file has."""
    for name in ("image_id", "category_id", "score"):
        if name not in names:
            raise InputError(f"{source}: no column {name!r}, found {sorted(names)}")
    boxes = [*_BOX] if set(_BOX) <= names else ["bbox"] if "bbox" in names else []
    masks = [*_MASK] if set(_MASK) <= names else ["segmentation"] if "segmentation" in names else []
    if not boxes and not masks:
        raise InputError(f"{source}: no columns for boxes (x, y, w, h or bbox) or masks")
    return boxes, masks


class _Columns(NamedTuple):
    """The columns that are read: those of lists, or those of boxes and of masks."""

    lists: ListColumns | None
    boxes: list[str]
    masks: list[str]

    @staticmethod
    def of(schema: Any, source: str, *, masks: bool) -> _Columns:
        """The columns of a file; without those of masks where it has boxes and masks are not
        wanted."""
        lists = ListColumns.of(schema, source, masks=masks)
        if lists is not None:
            return _Columns(lists, [], [])
        box_columns, mask_columns = _columns(set(schema.names), source)
        return _Columns(None, box_columns, mask_columns if masks or not box_columns else [])

    @property
    def names(self) -> list[str]:
        if self.lists is not None:
            return self.lists.names
        return ["image_id", "category_id", "score", *self.boxes, *self.masks]


class LateColumnsError(InputError):
    """Later rows have boxes or masks, but the file was started without columns for them."""


def write_parquet(tables: Iterable[Detections], path: str | os.PathLike[str]) -> None:
    """Writes tables in order, a row group at a time. Boxes and masks are written where
    the first table with rows has them; raises `LateColumnsError` where only a later one does."""
    import_arrow("writing Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = iter(tables)
    first = next((table for table in tables if len(table)), None)
    boxes = first is None or first.boxes_given
    masks = first is not None and first.masks is not None
    fields = [("image_id", pa.int64()), ("category_id", pa.int64()), ("score", pa.float64())]
    if boxes:
        fields += [(name, pa.float64()) for name in _BOX]
    if masks:
        fields += [
            ("mask", pa.large_binary()),  # a table may have more of them than 32 bits can count
            ("mask_kind", pa.uint8()),
            ("mask_height", pa.int32()),
            ("mask_width", pa.int32()),
        ]
    # Nothing is ever null; saying so makes it faster to read.
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in fields])
    with (
        write_whole(path) as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="lz4",
            write_statistics=False,
            use_dictionary=[name for name in _REPEATED if name in schema.names],
        ) as writer,
    ):
        for group in _row_groups([] if first is None else chain([first], tables), schema):
            writer.write_table(group)


def _row_groups(tables: Iterable[Detections], schema: Any) -> Iterator[Any]:
    """The rows of all tables as Arrow tables, one per row group."""
    import pyarrow as pa

    parts: list[Any] = []
    rows = size = 0
    for table in tables:
        begin = 0
        while begin < len(table):
            end = min(len(table), begin + ROW_GROUP - rows)
            parts.append(_record_batch(table, begin, end, schema))
            rows += end - begin
            size += parts[-1].nbytes
            begin = end
            if rows == ROW_GROUP or size >= GROUP_BYTES:
                yield pa.Table.from_batches(parts)
                parts, rows, size = [], 0, 0
    if parts:
        yield pa.Table.from_batches(parts)


def _record_batch(table: Detections, begin: int, end: int, schema: Any) -> Any:
    """Rows `begin` to `end` of a table, with the columns of the schema."""
    import pyarrow as pa

    masks = table.masks
    for what, late in (
        ("boxes", table.boxes_given and "x" not in schema.names),
        ("masks", masks is not None and masks.kind.any() and "mask" not in schema.names),
    ):
        if late:
            raise LateColumnsError(
                f"{table.source}: rows with {what} follow rows without, but all rows of a Parquet "
                "file need the same columns"
            )
    # Numbers by their buffers: pyarrow's own way imports pandas first, where that is installed.
    columns: list[Any] = [
        table.image_ids[table.image[begin:end]],
        table.category_ids[table.category[begin:end]],
        table.score[begin:end],
    ]
    if "x" in schema.names:
        columns += [table.box[begin:end, k] for k in range(4)]
    if "mask" in schema.names:
        masks = no_masks(len(table)) if masks is None else masks
        offsets = masks.offsets[begin : end + 1]
        data = np.ascontiguousarray(masks.data[offsets[0] : offsets[-1]])
        buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(data)]
        columns += [
            pa.Array.from_buffers(pa.large_binary(), end - begin, buffers),
            masks.kind[begin:end],
            masks.height[begin:end],
            masks.width[begin:end],
        ]
    arrays = [
        pa.Array.from_buffers(kind, end - begin, [None, pa.py_buffer(np.ascontiguousarray(column))])
        if isinstance(column, np.ndarray)
        else column
        for kind, column in zip(schema.types, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
