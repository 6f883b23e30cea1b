"""Partials as bytes.

    8 bytes   "lvdetPRT"
    4         version
    8         length of all that follows
    4         length of the header
    …         header: JSON, with the settings and the number of rows of each kind
    …         the columns of `part_columns.LAYOUT`, in this order, little-endian
    16        BLAKE2b of everything before

Nothing is executed, and nothing is allocated that the bytes are not long enough for.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.matching.match import AREAS
from lvdet.partials.part_columns import LAYOUT, PartColumns, Size

MAGIC, VERSION = b"lvdetPRT", 1
_START = struct.Struct("<8sIQI")
#: Bytes up to where the length begins to count.
_BEFORE = 8 + 4 + 8
_CHECK = 16
#: The rows that each column of row numbers refers to.
_REFERS = {
    "image": "images",
    "category": "classes",
    "matched": "rows",
    "hits": "matched",
    "contested": "matched",
    "boxed": "rows",
    "drawn": "images",
    "object_image": "images",
    "object_category": "classes",
}
_RISING = ("image_ids", "category_ids", "matched", "hits", "boxed")


def to_bytes(header: Mapping[str, Any], part: PartColumns) -> bytes:
    """The header and the columns as bytes; sizes are added to the header."""
    columns = part.columns()
    text = json.dumps({**header, "sizes": _sizes(columns)}).encode("ascii")
    pieces = [text]
    pieces += [
        np.ascontiguousarray(columns[name], dtype=dtype).tobytes()
        for name, (dtype, _) in LAYOUT.items()
    ]
    length = 4 + sum(map(len, pieces)) + _CHECK
    pieces.insert(0, _START.pack(MAGIC, VERSION, length, len(text)))
    check = blake2b(digest_size=_CHECK)
    for piece in pieces:
        check.update(piece)
    return b"".join([*pieces, check.digest()])


def from_bytes(data: bytes | bytearray | memoryview, thresholds: Any) -> tuple[Any, PartColumns]:
    """The header and the columns; InputError for anything but what `to_bytes` made. `thresholds`
    is a function that tells from the header how many IoU thresholds there are, and raises
    ValueError where the header is not valid."""
    try:
        view = memoryview(data).cast("B")
    except (TypeError, ValueError):
        raise InputError(
            f"a partial is of type {type(data).__name__}, expected contiguous bytes"
        ) from None
    text = _checked(view)
    try:
        header = json.loads(bytes(text))
        sizes = header.pop("sizes")
        if list(sizes) != list(_NAMES) or not all(
            type(size) is int and 0 <= size < 2**31 for size in sizes.values()
        ):
            raise ValueError("sizes")
        levels = thresholds(header)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InputError):
        raise InputError("the bytes are not a valid partial: its header is damaged") from None
    columns = _columns(
        view[_START.size + len(text) : -_CHECK], {**sizes, "bytes": (levels + 7) // 8}
    )
    _require_valid(columns, sizes, levels)
    return header, PartColumns(**columns)


def _checked(view: memoryview) -> memoryview:
    """The header's text, of bytes that are as they were written."""
    if len(view) < _START.size + _CHECK:
        raise InputError(f"the bytes are not a partial: there are only {len(view):,}")
    magic, version, length, header = _START.unpack_from(view)
    if magic != MAGIC:
        raise InputError("the bytes are not a partial: they begin otherwise")
    if version != VERSION:
        raise InputError(f"the partial has version {version}, expected {VERSION}")
    if len(view) != _BEFORE + length:
        raise InputError(
            f"the partial has {len(view):,} bytes, expected {_BEFORE + length:,}: it is truncated, "
            "or something follows it"
        )
    if blake2b(view[:-_CHECK], digest_size=_CHECK).digest() != bytes(view[-_CHECK:]):
        raise InputError("the partial is damaged: its checksum differs")
    if header > len(view) - _START.size - _CHECK:
        raise InputError("the bytes are not a valid partial: its header is damaged")
    return view[_START.size : _START.size + header]


def _names() -> tuple[str, ...]:
    found = [size for _, shape in LAYOUT.values() for size in shape if isinstance(size, str)]
    return tuple(dict.fromkeys(name for name in found if name != "bytes"))


_NAMES = _names()


def _sizes(columns: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    first = {shape[0]: len(columns[name]) for name, (_, shape) in LAYOUT.items()}
    return {str(name): first[name] for name in _NAMES}


def _columns(view: memoryview, sizes: Mapping[str, int]) -> dict[str, NDArray[Any]]:
    def size(one: Size) -> int:
        return sizes[one] if isinstance(one, str) else one

    shapes = {name: tuple(map(size, shape)) for name, (_, shape) in LAYOUT.items()}
    lengths = {
        name: prod(shapes[name]) * np.dtype(dtype).itemsize for name, (dtype, _) in LAYOUT.items()
    }
    if sum(lengths.values()) != len(view):
        raise InputError(
            "the bytes are not a valid partial: the columns differ in length from its header"
        )
    found, begin = {}, 0
    for name, (dtype, _) in LAYOUT.items():
        piece = np.frombuffer(view[begin : begin + lengths[name]], dtype=dtype)
        found[name] = piece.reshape(shapes[name]).astype(np.dtype(dtype).newbyteorder("="))
        begin += lengths[name]
    return found


def _require_valid(
    columns: Mapping[str, NDArray[Any]], sizes: Mapping[str, int], levels: int
) -> None:
    """Raises for values that no partial has, so that kernels can take the columns as they are."""
    wrong = [name for name, of in _REFERS.items() if not _inside(columns[name], sizes[of])]
    wrong += [name for name in _RISING if (columns[name][1:] <= columns[name][:-1]).any()]
    wrong += [
        name
        for name in ("image_rows", "category_rows", "outside", "drawn_place", "objects")
        if (columns[name] < 0).any()
    ]
    image, position = columns["image"], columns["position"]
    later = (position[1:] > position[:-1]) | (
        (position[1:] == position[:-1]) & (image[1:] >= image[:-1])
    )
    wrong += [] if later.all() else ["position"]
    wrong += [] if np.isfinite(columns["score"]).all() else ["score"]
    wrong += [name for name in ("contested", "drawn") if not _distinct(columns[name])]
    unused = {"in_budgets": 1, "wrong": len(AREAS), "bits": levels % 8, "reached": levels % 8}
    for name, used in unused.items():  # the other bits of a byte, the last one of thresholds
        last = columns[name][..., -1:] if columns[name].ndim > 1 else columns[name]
        wrong += [name] if used and (last >> used).any() else []
    for ids, rows in (("image", "image_rows"), ("category", "category_rows")):
        held = np.bincount(columns[ids], minlength=len(columns[rows])) if not wrong else 0
        wrong += [] if wrong or (held <= columns[rows]).all() else [rows]
    if wrong:
        raise InputError(f"the bytes are not a valid partial: {wrong[0]} holds impossible values")


def _inside(column: NDArray[Any], count: int) -> bool:
    return not len(column) or bool(column.min() >= 0 and column.max() < count)


def _distinct(column: NDArray[Any]) -> bool:
    return len(np.unique(column)) == len(column)
