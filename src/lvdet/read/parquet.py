"""Detections as Parquet.

Columns: image_id, category_id, score, and x, y, w, h (or one list column `bbox`). Masks, where
there are any, in mask (bytes), mask_kind, mask_height and mask_width as in
`lvdet.tables.masks.Masks`, or in one column `segmentation` of {size, counts} records.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.read.files import Progress, write_whole
from lvdet.read.records import masks_from_segmentations, require_masks
from lvdet.tables.detections import Detections, masks_to_boxes
from lvdet.tables.masks import NONE, Masks
from lvdet.tables.values import Problem, value_problems
from lvdet.threads import thread_count

#: Rows of a row group when writing, and decoded at a time when reading.
BATCH = 1 << 18
_BOX = ("x", "y", "w", "h")
_MASK = ("mask", "mask_kind", "mask_height", "mask_width")


def load_parquet(
    path: Path, *, masks: bool, threads: int | None, progress: Progress | None
) -> tuple[Detections, list[Problem]]:
    """The detections, row groups read side by side into columns of the final size."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = str(path)
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            return _read(file, path, masks, threads, progress)
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{source}: not a Parquet file that can be read: {text}") from None


def _read(
    file: Any, path: Path, masks: bool, threads: int | None, progress: Progress | None
) -> tuple[Detections, list[Problem]]:
    import pyarrow.parquet as pq

    source = str(path)
    names = set(file.schema_arrow.names)
    for name in ("image_id", "category_id", "score"):
        if name not in names:
            raise InputError(f"{source}: there is no column {name!r}, it has {sorted(names)}")
    box_columns = [*_BOX] if set(_BOX) <= names else ["bbox"] if "bbox" in names else []
    mask_columns = (
        [*_MASK] if set(_MASK) <= names else ["segmentation"] if "segmentation" in names else []
    )
    if not box_columns and not mask_columns:
        raise InputError(f"{source}: there are neither x, y, w, h nor bbox nor masks")
    if not masks and box_columns:
        mask_columns = []
    columns = ["image_id", "category_id", "score", *box_columns, *mask_columns]
    sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
    if min(sizes, default=0) < 0:
        raise InputError(f"{source}: not a Parquet file that can be read: a negative size")
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64).tolist()
    total = starts[-1]
    image, category = _Ids(total), _Ids(total)
    score = _native.empty_column(total, 1)
    box = _native.empty_column(total, 4) if box_columns else None
    parts: dict[int, Masks] = {}
    suspicious: list[int] = []  # checked here, while the batch is in the cache

    handles: SimpleQueue[Any] = SimpleQueue()  # a reader is used by one thread at a time

    def read_group(group: int) -> int:
        """Decodes one row group into its place."""
        try:
            own = handles.get_nowait()
        except Empty:
            own = opened.enter_context(pq.ParquetFile(path, pre_buffer=False))
        at = starts[group]
        for batch in own.iter_batches(
            BATCH, row_groups=[group], columns=columns, use_threads=False
        ):
            end = at + batch.num_rows
            image.add(at, _integers(batch, "image_id", source, at, np.int64))
            category.add(at, _integers(batch, "category_id", source, at, np.int64))
            score[at:end] = _numbers(batch, "score", source, at)
            if box is not None and not _fill_boxes(
                batch, box_columns, score[at:end], box[at:end], source, at
            ):
                suspicious.append(at)
            if mask_columns:
                parts[at] = _masks(batch, mask_columns, source, at)
            at = end
        if at != starts[group + 1]:
            raise InputError(f"{source}: row group {group} has not as many rows as it says")
        handles.put(own)
        return group

    with ExitStack() as opened, ThreadPoolExecutor(thread_count(threads)) as pool:
        for group in pool.map(read_group, range(len(sizes))):
            if progress is not None:
                progress(starts[group + 1], total)
        image_ids, category_ids = image.finish(pool), category.finish(pool)
    table = Masks.concatenate([parts[at] for at in sorted(parts)]) if parts else None
    if table is not None and not table.kind.any():
        table = None
    if box is None:
        missing = np.arange(total) if table is None else np.flatnonzero(table.kind == NONE)
        if len(missing):
            raise InputError(f"{source}, row {missing[0]:,}: there is neither bbox nor mask")
        box = np.zeros((0, 4)) if table is None else masks_to_boxes(table)
    problems = []
    if suspicious or not box_columns:
        problems = list(value_problems(source, score, box))
        np.nan_to_num(score, copy=False)  # told; a table cannot hold it
    detections = Detections(
        image.rows,
        category.rows,
        score,
        box,
        image_ids,
        category_ids,
        table,
        boxes_given=bool(box_columns),
        source=source,
    )
    return detections, problems


class _Ids:
    """Ids batch by batch in any order, as places among the distinct ids by first appearance."""

    def __init__(self, total: int) -> None:
        self.rows = _native.empty_rows(total)
        self._distinct: dict[int, NDArray[np.int64]] = {}

    def add(self, at: int, ids: NDArray[np.int64]) -> None:
        self._distinct[at] = _native.encode_ids_into(ids, self.rows[at : at + len(ids)])

    def finish(self, pool: ThreadPoolExecutor) -> NDArray[np.int64]:
        """Brings the batches' numbering together; returns the distinct ids."""
        starts = sorted(self._distinct)
        parts = [self._distinct[at] for at in starts]
        distinct: NDArray[np.int64]
        distinct, renamed = _native.encode_ids(np.concatenate([*parts, np.zeros(0, np.int64)]))
        names = np.cumsum([0, *map(len, parts)])

        def rename(number: int) -> None:
            rows = self.rows[starts[number] : (*starts, len(self.rows))[number + 1]]
            np.take(renamed[names[number] : names[number + 1]], rows, out=rows, mode="clip")

        list(pool.map(rename, range(len(starts))))
        return distinct


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


def _fill_boxes(
    batch: Any,
    columns: list[str],
    score: NDArray[np.float64],
    box: NDArray[np.float64],
    source: str,
    at: int,
) -> bool:
    """Fills in the boxes of a batch; True if they and the scores can be used."""
    import pyarrow as pa

    if columns != ["bbox"]:
        x, y, w, h = (
            np.ascontiguousarray(_numbers(batch, name, source, at), dtype=np.float64)
            for name in columns
        )
        return _native.fill_boxes(x, y, w, h, score, box)
    column = batch.column("bbox")
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
    box[:] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, 4)
    return _native.first_bad_row(score, box, 1) < 0


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
