"""Detections as Parquet.

Columns: image_id, category_id, score, and x, y, w, h (or one list column `bbox`). Masks, where
there are any, in mask (bytes), mask_kind, mask_height and mask_width as in
`lvdet.tables.masks.Masks`, or in one column `segmentation` of {size, counts} records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.files.collect import FileReport, collected_detections, new_collector
from lvdet.files.progress import Update
from lvdet.files.records import masks_from_segmentations, require_masks
from lvdet.files.writing import write_whole
from lvdet.tables.detections import Detections, masks_to_boxes
from lvdet.tables.masks import LARGEST_MASK, NONE, Masks, no_masks
from lvdet.tables.values import MOST_PROBLEMS, Problem, more_problems, require, value_problems
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
    path: Path,
    collector: _native.Collector,
    *,
    masks: bool,
    update: Update | None,
) -> FileReport:
    """Adds the detections of a file, batch by batch."""
    with _opened(path) as file, ExitStack() as stack:
        return _collect(file, str(path), collector, masks, update, stack)


def parquet_tables(path: Path, *, masks: bool, update: Update | None) -> Iterator[Detections]:
    """The detections of a file, a batch at a time. Where it has columns of masks, each table has
    masks."""
    source = str(path)
    with _opened(path) as file:
        for batch in _batches(file, source, masks, update):
            collector = new_collector()
            require(batch.add_to(collector, source))
            table = collected_detections(collector, source, [batch.report], masks=masks)
            if batch.may_have_masks and table.masks is None:
                table = replace(table, masks=no_masks(len(table)))
            yield table


def import_arrow() -> None:
    """Loads what reading takes, which is otherwise loaded when a file is opened."""
    import pyarrow.parquet  # noqa: F401


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Read through a small buffer: a row group may be the whole file.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=_BUFFER) as file:
            yield file
    except MemoryError:  # Arrow's own is one of its errors too
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{path}: invalid Parquet file: {text}") from None


def holds_masks(path: Path) -> bool:
    """The file has columns of masks; False where it cannot be read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = set(pq.read_schema(path).names)
    except (pa.ArrowException, UnicodeDecodeError, OSError):
        return False
    return set(_MASK) <= names or "segmentation" in names


def _collect(
    file: Any,
    source: str,
    collector: _native.Collector,
    masks: bool,
    update: Update | None,
    stack: ExitStack,
) -> FileReport:
    problems: list[Problem] = []
    rows = with_masks = without_box = unlisted = 0

    def add(batch: _Batch) -> None:
        nonlocal unlisted
        found = batch.add_to(collector, source)
        problems.extend(islice(found, MOST_PROBLEMS - len(problems)))
        unlisted += sum(1 for _ in found)

    adder = stack.enter_context(ThreadPoolExecutor(1)) if thread_count() > 1 else None
    added: Future[None] | None = None
    # One batch is added while the next is decoded.
    for batch in _batches(file, source, masks, update):
        if rows == 0:
            collector.expect(min(file.metadata.num_rows, _EXPECTED))
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
        rows += report.rows
        with_masks += report.rows_with_masks
        without_box += report.rows_without_box
    if added is not None:
        added.result()
    if unlisted:
        problems.append(more_problems(source, unlisted))
    return FileReport(problems, rows, with_masks, without_box)


def _batches(file: Any, source: str, masks: bool, update: Update | None) -> Iterator[_Batch]:
    """The rows of a file, some at a time."""
    box_columns, mask_columns = _columns(set(file.schema_arrow.names), source)
    if not masks and box_columns:
        mask_columns = []
    columns = ["image_id", "category_id", "score", *box_columns, *mask_columns]
    total = file.metadata.num_rows
    if total < 0:
        raise InputError(f"{source}: invalid Parquet file: negative size")
    at = 0
    # Arrow's own threads cost more than they save.
    rows = _mask_batch(file.metadata, mask_columns, source) if mask_columns else BATCH
    for decoded in file.iter_batches(rows, columns=columns, use_threads=False):
        yield _batch(decoded, box_columns, mask_columns, source, at)
        at += decoded.num_rows
        if update is not None:
            update(at, total)
    if at != total:
        raise InputError(f"{source}: has {at:,} rows, but its metadata says {total:,}")


def _mask_batch(metadata: Any, columns: list[str], source: str) -> int:
    """Rows to decode at a time. Refuses masks that are larger than any may be before they are
    decoded."""
    rows = MASK_BATCH
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = map(group.column, range(group.num_columns))
        size = sum(
            max(chunk.total_uncompressed_size, 8 * chunk.num_values)
            for chunk in chunks
            if chunk.path_in_schema.split(".")[0] in columns
        )
        mean = max(size // max(group.num_rows, 1), 1)
        if mean > LARGEST_MASK:
            raise InputError(
                f"{source}: masks of row group {number} take {mean:,} bytes per row, expected at "
                f"most {LARGEST_MASK:,}"
            )
        rows = min(rows, max(MASK_BYTES // mean, 1))
    return rows


@dataclass(frozen=True)
class _Batch:
    """Some rows of a file; boxes as [N, 4] or as their four columns."""

    at: int
    image: NDArray[np.int64]
    category: NDArray[np.int64]
    score: NDArray[np.float64]
    box: NDArray[np.float64] | tuple[NDArray[np.float64], ...]
    masks: Masks | None
    may_have_masks: bool  # there are columns of them
    boxes_given: bool

    @property
    def report(self) -> FileReport:
        rows = len(self.score)
        with_masks = 0 if self.masks is None else int((self.masks.kind != NONE).sum())
        return FileReport([], rows, with_masks, 0 if self.boxes_given else rows)

    def add_to(self, collector: _native.Collector, source: str) -> Iterator[Problem]:
        """Adds the rows; what is wrong with them."""
        masks = None if self.masks is None else self.masks.columns
        rows = (self.image, self.category, self.score)
        if isinstance(self.box, tuple):
            x, y, w, h = self.box
            usable = collector.add_sides(*rows, x, y, w, h, masks)
        else:
            usable = collector.add(*rows, self.box, masks)
        if usable:
            return
        box = np.stack(self.box, axis=1) if isinstance(self.box, tuple) else self.box
        for problem in value_problems(source, self.score, np.ascontiguousarray(box)):
            yield replace(problem, row=self.at + (problem.row or 0))


def _batch(
    decoded: Any, box_columns: list[str], mask_columns: list[str], source: str, at: int
) -> _Batch:
    image = _integers(decoded, "image_id", source, at, np.int64)
    category = _integers(decoded, "category_id", source, at, np.int64)
    score = _reals(decoded, "score", source, at)
    masks = _masks(decoded, mask_columns, source, at) if mask_columns else None
    if masks is not None and not masks.kind.any():
        masks = None
    box: NDArray[np.float64] | tuple[NDArray[np.float64], ...]
    if box_columns == ["bbox"]:
        box = _listed_boxes(decoded.column("bbox"), source, at)
    elif box_columns:
        box = tuple(_reals(decoded, name, source, at) for name in box_columns)
    else:
        missing = np.arange(len(score)) if masks is None else np.flatnonzero(masks.kind == NONE)
        if len(missing):
            raise InputError(f"{source}, row {at + missing[0]:,}: has neither bbox nor mask")
        box = np.zeros((0, 4)) if masks is None else masks_to_boxes(masks)
    return _Batch(at, image, category, score, box, masks, bool(mask_columns), bool(box_columns))


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


def _numbers(batch: Any, name: str, source: str, at: int, *, whole: bool = False) -> NDArray[Any]:
    column = batch.column(name)
    if column.null_count:
        raise InputError(
            f"{source}, rows {at:,} to {at + batch.num_rows:,}: column {name!r} has nulls"
        )
    values = _values(column)
    if values.dtype.kind not in ("iu" if whole else "iuf"):
        raise InputError(
            f"{source}: column {name!r} has type {values.dtype}, expected "
            + ("integers" if whole else "numbers")
        )
    return np.asarray(values)


def _values(column: Any) -> NDArray[Any]:
    """Numbers as they lie in memory: pyarrow's own way imports pandas first, where that is
    installed."""
    import pyarrow as pa

    kind = column.type
    letters = {
        "f": pa.types.is_floating(kind),
        "i": pa.types.is_signed_integer(kind),
        "u": pa.types.is_unsigned_integer(kind),
    }
    letter = next((letter for letter, fits in letters.items() if fits), None)
    data = column.buffers()[1] if letter and not column.null_count else None
    if data is None:  # no numbers, not all of them, or none at all
        return np.asarray(column.to_numpy(zero_copy_only=False))
    values = np.frombuffer(data, dtype=f"{letter}{kind.bit_width // 8}")
    return values[column.offset : column.offset + len(column)]


def _integers(
    batch: Any, name: str, source: str, at: int, dtype: type[np.signedinteger | np.unsignedinteger]
) -> NDArray[Any]:
    """Whole numbers that fit the type."""
    values = _numbers(batch, name, source, at, whole=True)
    if np.can_cast(values.dtype, dtype):
        return np.ascontiguousarray(values, dtype=dtype)
    bounds = np.iinfo(dtype)
    wrong = np.flatnonzero((values < bounds.min) | (values > bounds.max))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(f"{source}, row {at + row:,}: {name} {values[row]} is out of range")
    return np.ascontiguousarray(values, dtype=dtype)


def _reals(batch: Any, name: str, source: str, at: int) -> NDArray[np.float64]:
    return np.ascontiguousarray(_numbers(batch, name, source, at), dtype=np.float64)


def _listed_boxes(column: Any, source: str, at: int) -> NDArray[np.float64]:
    """[N, 4] boxes of a column of lists."""
    import pyarrow as pa

    kind = column.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (lists or pa.types.is_fixed_size_list(kind)) or not (
        pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
    ):
        raise InputError(f"{source}: column 'bbox' has type {kind}, expected lists of numbers")
    lengths = _values(column.value_lengths().fill_null(0))
    wrong = np.flatnonzero(lengths != 4)
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{source}, row {at + row:,}: bbox has {lengths[row]} numbers, expected 4 [x, y, w, h]"
        )
    values = _values(column.flatten())
    return np.ascontiguousarray(values, dtype=np.float64).reshape(-1, 4)


def _masks(batch: Any, columns: list[str], source: str, at: int) -> Masks:
    if columns == ["segmentation"]:
        return masks_from_segmentations(batch.column("segmentation").to_pylist(), source, at)
    import pyarrow as pa

    column = batch.column("mask")
    if column.null_count:
        raise InputError(f"{source}, rows {at:,} to {at + len(column):,}: column 'mask' has nulls")
    data = column.cast(pa.large_binary())
    offsets = np.frombuffer(data.buffers()[1], dtype=np.int64)[
        data.offset : data.offset + len(data) + 1
    ]
    buffer = data.buffers()[2]
    content = np.frombuffer(buffer, dtype=np.uint8) if buffer else np.zeros(0, dtype=np.uint8)
    masks = Masks(
        content[offsets[0] : offsets[-1]].copy(),
        offsets - offsets[0],
        _integers(batch, "mask_kind", source, at, np.uint8),
        _integers(batch, "mask_height", source, at, np.int32),
        _integers(batch, "mask_width", source, at, np.int32),
    )
    require_masks(masks, source, at)
    return masks


class LateColumnsError(InputError):
    """Rows have boxes or masks for which a file begun without them has no columns."""


def write_parquet(tables: Iterable[Detections], path: str | os.PathLike[str]) -> None:
    """Writes tables one after the other, a row group at a time. Boxes and masks are written where
    the first table with rows has them; raises `LateColumnsError` where only a later one does."""
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
    """The rows of all tables as Arrow tables, each of a row group."""
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
