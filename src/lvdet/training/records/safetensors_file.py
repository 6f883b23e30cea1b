"""Tensors in the safetensors format: a header in JSON, and the bytes of all tensors after it.

    8 bytes   length of the header, little-endian
    header    {"__metadata__": {text: text}, name: {"dtype", "shape", "data_offsets"}, …}, blanks
              to a multiple of 8
    bytes     the tensors, each row by row, without gaps

Reading runs no code of the file, and takes no word of its header for granted.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from lvdet.errors import InputError
from lvdet.files.writing import write_whole

#: Bytes of the longest header; the format's own limit.
LONGEST_HEADER = 100_000_000
_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes the file, whole or not at all. Larger items come first, so that each is aligned."""
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name in names:
        begin, end = end, end + tensors[name].numel() * tensors[name].element_size()
        header[name] = {
            "dtype": _NAMES[tensors[name].dtype],
            "shape": list(tensors[name].shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with write_whole(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in names:
            flat = tensors[name].detach().to("cpu").contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)


def read_metadata(path: Path) -> dict[str, str]:
    """The texts in a file's header."""
    with _opened(path) as file:
        return _header(path, file)[0]


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file by name, on the CPU, and the texts in its header."""
    with _opened(path) as file:
        metadata, entries, size = _header(path, file)
        content = bytearray(size)
        if file.readinto(content) != size:  # type: ignore[attr-defined]
            raise InputError(f"{path}: cannot be read to its end")
    tensors = {}
    for name, (dtype, shape, begin, end) in entries.items():
        if begin == end:
            tensors[name] = torch.empty(shape, dtype=dtype)
            continue
        count = math.prod(shape)
        if begin % dtype.itemsize:  # allowed, and more than torch can look at in place
            part = torch.frombuffer(content[begin:end], dtype=dtype, count=count)
        else:
            part = torch.frombuffer(content, dtype=dtype, count=count, offset=begin)
        tensors[name] = part.reshape(shape)
    return tensors, metadata


def _opened(path: Path) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


_Entry = tuple[torch.dtype, list[int], int, int]


def _header(path: Path, file: IO[bytes]) -> tuple[dict[str, str], dict[str, _Entry], int]:
    """Texts, entries and the number of bytes after them; every number in it is checked."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, LONGEST_HEADER):
        raise InputError(f"{path}: not a safetensors file, or not a whole one ({size:,} bytes)")
    try:
        header = json.loads(file.read(length).decode(), object_pairs_hook=_without_twins)
    except (ValueError, RecursionError):
        raise InputError(f"{path}: not a safetensors file: its header is not JSON") from None
    if not isinstance(header, dict):
        raise InputError(f"{path}: not a safetensors file: its header is not an object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise InputError(f"{path}: __metadata__ is expected to hold texts by name")
    entries = {name: _entry(path, name, entry) for name, entry in header.items()}
    size -= 8 + length
    place = 0
    for name, (_, _, begin, end) in sorted(entries.items(), key=lambda item: item[1][2:]):
        if begin != place:
            raise InputError(
                f"{path}: tensor {name} begins at byte {begin:,}, expected {place:,}, where the "
                "one before it ends"
            )
        place = end
    if place != size:
        raise InputError(f"{path}: has {size:,} bytes of tensors, its header says {place:,}")
    return metadata, entries, size


def _entry(path: Path, name: str, entry: Any) -> _Entry:
    try:
        dtype, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise InputError(
            f"{path}: tensor {name} is expected to have dtype, shape and 2 data_offsets"
        ) from None
    if not isinstance(dtype, str) or dtype not in _TYPES:
        raise InputError(f"{path}: tensor {name} has dtype {dtype!r}, which is not known")
    numbers = [begin, end, *shape] if isinstance(shape, list) else [None]
    if not all(type(number) is int and 0 <= number < 1 << 62 for number in numbers):
        raise InputError(f"{path}: tensor {name} has a shape or offsets that are no whole numbers")
    if end - begin != math.prod(shape) * _TYPES[dtype].itemsize:
        raise InputError(
            f"{path}: tensor {name} of shape {shape} and dtype {dtype} is in {end - begin:,} bytes"
        )
    return _TYPES[dtype], shape, begin, end


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found
