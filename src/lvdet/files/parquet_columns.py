"""Columns of a Parquet file as checked arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.known_images import KnownImages
from lvdet.files.records import masks_from_segmentations, require_masks
from lvdet.tables.masks import Masks

#: Two to the power of 63: from here on no float is an int64.
_BEYOND = 2.0**63


def read_images(column: Any, source: str, at: int, images: KnownImages) -> NDArray[np.int64]:
    """The image ids of a column of numbers or of file names."""
    import pyarrow as pa

    kind = column.type
    texts = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(
        is_text(texts)
        for is_text in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    ):
        if pa.types.is_dictionary(kind):
            column = column.dictionary_decode()
        return read_whole(column, "image_id", source, at)
    require_filled(column, "image_id", source, at)
    if not pa.types.is_dictionary(kind):
        column = column.cast(pa.large_string()).dictionary_encode()
    found, problems = images.find(column.dictionary.to_pylist())
    places = read_values(column.indices).astype(np.int64)
    wrong = np.zeros(len(found), dtype=bool)
    wrong[[place for place, _ in problems]] = True
    rows = np.flatnonzero(wrong[places])
    if len(rows):  # what no row uses may stand in the file
        what = dict(problems)[int(places[rows[0]])]
        raise InputError(f"{source}, row {at + int(rows[0]):,}: {what}")
    return found[places]


def has_texts(schema: Any) -> bool:
    """Whether image ids are strings."""
    import pyarrow as pa

    kind = schema.field("image_id").type if schema.names.count("image_id") == 1 else pa.null()
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def require_filled(column: Any, name: str, source: str, at: int) -> None:
    """Raises for nulls."""
    if column.null_count:
        raise InputError(
            f"{source}, rows {at:,} to {at + len(column):,}: column {name!r} has nulls"
        )


def read_whole(
    column: Any,
    name: str,
    source: str,
    at: int,
    dtype: type[np.signedinteger | np.unsignedinteger] = np.int64,
) -> NDArray[Any]:
    """Integers that fit the type; they may be stored as floats."""
    values = read_numbers(column, name, source, at)
    if np.can_cast(values.dtype, dtype):
        return np.ascontiguousarray(values, dtype=dtype)
    bounds = np.iinfo(dtype)
    row = first_not_whole(values, bounds)
    if row is not None:
        what = "is out of range"
        if values.dtype.kind == "f" and not float(values[row]).is_integer():
            what = "is not an integer"
        raise InputError(f"{source}, row {at + row:,}: {name} {values[row]} {what}")
    return np.ascontiguousarray(values, dtype=dtype)


def first_not_whole(values: NDArray[Any], bounds: Any) -> int | None:
    """The position of the first number that is not an integer within the bounds."""
    if values.dtype.kind == "f":
        high = _BEYOND if bounds.max == 2**63 - 1 else float(bounds.max) + 1
        fits = (values >= float(bounds.min)) & (values < high) & (np.floor(values) == values)
    else:
        fits = (values >= bounds.min) & (values <= bounds.max)
    wrong = np.flatnonzero(~fits)
    return int(wrong[0]) if len(wrong) else None


def read_reals(column: Any, name: str, source: str, at: int) -> NDArray[np.float64]:
    return np.ascontiguousarray(read_numbers(column, name, source, at), dtype=np.float64)


def read_numbers(column: Any, name: str, source: str, at: int) -> NDArray[Any]:
    """Numbers of any type."""
    require_filled(column, name, source, at)
    values = read_values(column)
    if values.dtype.kind not in "iuf":
        raise InputError(f"{source}: column {name!r} has type {values.dtype}, expected numbers")
    return np.asarray(values)


def read_values(column: Any) -> NDArray[Any]:
    """Numbers as stored in memory. pyarrow's own conversion would first import pandas, if it is
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


def is_list(kind: Any) -> bool:
    """Whether it is a list type, of fixed or variable length."""
    import pyarrow as pa

    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def read_boxes(column: Any, source: str, at: int) -> NDArray[np.float64]:
    """[N, 4] boxes of a column of lists."""
    kind = column.type
    if not is_list(kind) or not is_number(kind.value_type):
        raise InputError(f"{source}: column 'bbox' has type {kind}, expected lists of numbers")
    lengths = read_values(column.value_lengths().fill_null(0))
    wrong = np.flatnonzero(lengths != 4)
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{source}, row {at + row:,}: bbox has {lengths[row]} numbers, expected 4 [x, y, w, h]"
        )
    values = read_values(column.flatten())
    return np.ascontiguousarray(values, dtype=np.float64).reshape(-1, 4)


def read_masks(batch: Any, columns: list[str], source: str, at: int) -> Masks:
    """The masks of one column of segmentations, or of the four columns that lvdet writes."""
    if columns == ["segmentation"]:
        return masks_from_segmentations(batch.column("segmentation").to_pylist(), source, at)
    import pyarrow as pa

    column = batch.column("mask")
    require_filled(column, "mask", source, at)
    data = column.cast(pa.large_binary())
    offsets = np.frombuffer(data.buffers()[1], dtype=np.int64)[
        data.offset : data.offset + len(data) + 1
    ]
    buffer = data.buffers()[2]
    content = np.frombuffer(buffer, dtype=np.uint8) if buffer else np.zeros(0, dtype=np.uint8)

    def whole(name: str, dtype: type[np.signedinteger | np.unsignedinteger]) -> NDArray[Any]:
        return read_whole(batch.column(name), name, source, at, dtype)

    masks = Masks(
        content[offsets[0] : offsets[-1]].copy(),
        offsets - offsets[0],
        whole("mask_kind", np.uint8),
        whole("mask_height", np.int32),
        whole("mask_width", np.int32),
    )
    require_masks(masks, source, at)
    return masks
