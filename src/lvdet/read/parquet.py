"""Detections as Parquet.

Columns: image_id, category_id, score, and x, y, w, h (or one list column `bbox`). Masks, where
there are any, in mask (bytes), mask_kind, mask_height and mask_width as in
`lvdet.tables.masks.Masks`, or in one column `segmentation` of {size, counts} records.
"""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.read.collect import FileReport
from lvdet.read.files import Progress, write_whole
from lvdet.read.records import masks_from_segmentations, require_masks
from lvdet.tables.detections import Detections, masks_to_boxes
from lvdet.tables.masks import NONE, Masks
from lvdet.tables.values import Problem, value_problems
from lvdet.threads import thread_count

#: Rows of a row group when writing, and decoded at a time when reading.
BATCH = 1 << 18
#: Rows for which room is taken at once on a file's word.
_EXPECTED = 1 << 24
_BOX = ("x", "y", "w", "h")
_MASK = ("mask", "mask_kind", "mask_height", "mask_width")


def collect_parquet(
    path: Path,
    collector: _native.Collector,
    *,
    masks: bool,
    threads: int | None,
    progress: Progress | None,
) -> FileReport:
    """Adds the detections of a file, batch by batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, pre_buffer=False) as file, ExitStack() as stack:
            return _collect(file, str(path), collector, masks, threads, progress, stack)
    except MemoryError:  # Arrow's own is one of its errors too
        raise
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{path}: not a Parquet file that can be read: {text}") from None


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
    threads: int | None,
    progress: Progress | None,
    stack: ExitStack,
) -> FileReport:
    box_columns, mask_columns = _columns(set(file.schema_arrow.names), source)
    if not masks and box_columns:
        mask_columns = []
    columns = ["image_id", "category_id", "score", *box_columns, *mask_columns]
    total = file.metadata.num_rows
    problems: list[Problem] = []
    if total < 0:
        raise InputError(f"{source}: not a Parquet file that can be read: a negative size")
    collector.expect(min(total, _EXPECTED))
    at = with_masks = 0
    adder = stack.enter_context(ThreadPoolExecutor(1)) if thread_count(threads) > 1 else None
    added: Future[None] | None = None
    # Arrow's own threads cost more than they save; one batch is added while the next is decoded.
    for batch in file.iter_batches(BATCH, columns=columns, use_threads=False):
        image = _integers(batch, "image_id", source, at, np.int64)
        category = _integers(batch, "category_id", source, at, np.int64)
        score = np.ascontiguousarray(_numbers(batch, "score", source, at), dtype=np.float64)
        shapes = _masks(batch, mask_columns, source, at) if mask_columns else None
        if shapes is not None and not shapes.kind.any():
            shapes = None
        box, usable = _boxes(batch, box_columns, shapes, score, source, at)
        if not usable:
            problems += (
                replace(problem, row=at + (problem.row or 0))
                for problem in value_problems(source, score, box)
            )
        if added is not None:
            added.result()
        rows = (image, category, score, box, None if shapes is None else shapes.columns)
        if adder is None:
            collector.add(*rows)
        else:
            added = adder.submit(collector.add, *rows)
        with_masks += 0 if shapes is None else int((shapes.kind != NONE).sum())
        at += len(score)
        if progress is not None:
            progress(at, total)
    if added is not None:
        added.result()
    if at != total:
        raise InputError(f"{source}: it has {at:,} rows, but says {total:,}")
    return FileReport(problems, total, with_masks, 0 if box_columns else total)


def _columns(names: set[str], source: str) -> tuple[list[str], list[str]]:
    """The columns of boxes and of masks that the file has."""
    for name in ("image_id", "category_id", "score"):
        if name not in names:
            raise InputError(f"{source}: there is no column {name!r}, it has {sorted(names)}")
    boxes = [*_BOX] if set(_BOX) <= names else ["bbox"] if "bbox" in names else []
    masks = [*_MASK] if set(_MASK) <= names else ["segmentation"] if "segmentation" in names else []
    if not boxes and not masks:
        raise InputError(f"{source}: there are neither x, y, w, h nor bbox nor masks")
    return boxes, masks


def _numbers(batch: Any, name: str, source: str, at: int) -> NDArray[Any]:
    column = batch.column(name)
    if column.null_count:
        raise InputError(
            f"{source}, rows {at:,} to {at + batch.num_rows:,}: column {name!r} has nulls"
        )
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in ("iu" if name.endswith("_id") else "iuf"):
        raise InputError(
            f"{source}: column {name!r} is of {values.dtype}, expected "
            + ("whole numbers" if name.endswith("_id") else "numbers")
        )
    return np.asarray(values)


def _integers(
    batch: Any, name: str, source: str, at: int, dtype: type[np.signedinteger | np.unsignedinteger]
) -> NDArray[Any]:
    """Whole numbers that fit the type."""
    values = _numbers(batch, name, source, at)
    bounds = np.iinfo(dtype)
    if values.dtype.kind not in "iu":
        raise InputError(f"{source}: column {name!r} is of {values.dtype}, expected whole numbers")
    wrong = np.flatnonzero((values < bounds.min) | (values > bounds.max))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(f"{source}, row {at + row:,}: {name} is {values[row]}, out of range")
    return np.ascontiguousarray(values, dtype=dtype)


def _boxes(
    batch: Any,
    columns: list[str],
    masks: Masks | None,
    score: NDArray[np.float64],
    source: str,
    at: int,
) -> tuple[NDArray[np.float64], bool]:
    """The boxes of a batch, and whether they and the scores can be used."""
    if not columns:
        missing = np.arange(len(score)) if masks is None else np.flatnonzero(masks.kind == NONE)
        if len(missing):
            raise InputError(f"{source}, row {at + missing[0]:,}: there is neither bbox nor mask")
        box = np.zeros((0, 4)) if masks is None else masks_to_boxes(masks)
    elif columns == ["bbox"]:
        box = _listed_boxes(batch.column("bbox"), source, at)
    else:
        x, y, w, h = (
            np.ascontiguousarray(_numbers(batch, name, source, at), dtype=np.float64)
            for name in columns
        )
        box, usable = _native.join_boxes(x, y, w, h, score)
        return box, usable
    return box, _native.first_bad_row(score, box, 1) < 0


def _listed_boxes(column: Any, source: str, at: int) -> NDArray[np.float64]:
    """[N, 4] boxes of a column of lists."""
    import pyarrow as pa

    kind = column.type
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not (lists or pa.types.is_fixed_size_list(kind)) or not (
        pa.types.is_floating(kind.value_type) or pa.types.is_integer(kind.value_type)
    ):
        raise InputError(f"{source}: column 'bbox' is of {kind}, expected lists of numbers")
    lengths = np.array(column.value_lengths().fill_null(0))
    wrong = np.flatnonzero(lengths != 4)
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{source}, row {at + row:,}: bbox has {lengths[row]} numbers, expected 4 [x, y, w, h]"
        )
    values = column.flatten().to_numpy(zero_copy_only=False)
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


def write_parquet(detections: Detections, path: str | os.PathLike[str]) -> None:
    """Writes the detections, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    fields = [("image_id", pa.int64()), ("category_id", pa.int64()), ("score", pa.float64())]
    if detections.boxes_given:
        fields += [(name, pa.float64()) for name in _BOX]
    masks = detections.masks
    if masks is not None:
        fields += [
            ("mask", pa.binary()),
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
        ) as writer,
    ):
        for begin in range(0, len(detections), BATCH):
            rows = slice(begin, min(begin + BATCH, len(detections)))
            columns: list[Any] = [
                detections.image_ids[detections.image[rows]],
                detections.category_ids[detections.category[rows]],
                detections.score[rows],
            ]
            if detections.boxes_given:
                columns += [np.ascontiguousarray(detections.box[rows, k]) for k in range(4)]
            if masks is not None:
                offsets = masks.offsets[begin : rows.stop + 1]
                data = masks.data[offsets[0] : offsets[-1]]
                columns += [
                    pa.Array.from_buffers(
                        pa.binary(),
                        rows.stop - begin,
                        [
                            None,
                            pa.py_buffer((offsets - offsets[0]).astype(np.int32)),
                            pa.py_buffer(np.ascontiguousarray(data)),
                        ],
                    ),
                    masks.kind[rows],
                    masks.height[rows],
                    masks.width[rows],
                ]
            writer.write_batch(pa.record_batch(columns, schema=schema))
