"""How much the columns of a Parquet file unpack to.

The file's metadata may say anything, so pages are asked as well. Both are read here, because Arrow
aborts the process where some of the metadata is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

from lvdet.bounds import PAGES_ASKED
from lvdet.errors import InputError

#: Bytes read of a page for its header, more where they do not hold it, and the most.
_HEADER, _LONGEST_HEADER = 256, 1 << 24
_DEEPEST = 16
#: Bytes from a place in a file, fewer at its end.
Read: TypeAlias = Callable[[int, int], bytes]
_BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 3, 7, 8, 9, 10, 11, 12


@dataclass(frozen=True)
class Chunk:
    """A column of a row group: its name up to the first dot, how many values it has, and the bytes
    they unpack to; and where it begins, and its bytes in the file."""

    name: str
    values: int
    unpacked: int
    begin: int
    packed: int


@dataclass(frozen=True)
class Group:
    """A row group: how many rows it has, and its columns."""

    rows: int
    chunks: list[Chunk]

    def size(self, names: Sequence[str]) -> int:
        """The bytes that columns unpack to; values that are stored once take room each."""
        return sum(max(c.unpacked, 8 * c.values) for c in self.chunks if c.name in names)

    def values(self, name: str) -> int:
        """How many values a column has."""
        return max((chunk.values for chunk in self.chunks if chunk.name == name), default=0)


def read_layout(file: IO[bytes], name: str, columns: Sequence[str], *, pages: bool) -> list[Group]:
    """The row groups of a file, with those columns. If not `pages`, sizes are the metadata's."""

    def read(at: int, count: int) -> bytes:
        file.seek(at)
        return file.read(count)

    try:
        size = file.seek(0, os.SEEK_END)
        end = read(max(size - 8, 0), 8)
        footer = int.from_bytes(end[:4], "little")
        if end[4:] != b"PAR1" or footer > size - 8:
            raise ValueError("no metadata at its end")
        groups = _Compact(read(size - 8 - footer, footer)).struct()[4]
        reader = read if pages and size <= PAGES_ASKED else None
        return [_group(reader, group, columns) for group in groups]
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OSError) as error:
        reason = error if isinstance(error, ValueError) else "damaged metadata"
        raise InputError(f"{name}: invalid Parquet file: {reason}") from None


def _group(read: Read | None, group: dict[int, Any], columns: Sequence[str]) -> Group:
    chunks = []
    for chunk in group[1]:
        column = chunk[3]
        name = column[3][0].decode()
        if name in columns:
            begin = min(column[9], column.get(11) or column[9])
            held = 0 if read is None or not group[3] else _page_bytes(read, begin, column[7])
            chunks.append(Chunk(name, column[5], max(column[6], held), begin, column[7]))
    return Group(group[3], chunks)


def _page_bytes(read: Read, at: int, packed: int) -> int:
    """The bytes that the pages of a column chunk unpack to."""
    end, total = at + packed, 0
    while at < end:
        length, header = _header(read, at)
        if header[2] < 0 or header[3] < 0:
            raise ValueError("a page has a negative size")
        at += length + header[3]
        total += header[2]
    return total


def _header(read: Read, at: int) -> tuple[int, dict[int, Any]]:
    """The length of a page's header, and its fields."""
    size = _HEADER
    while True:
        text = _Compact(read(at, size))
        try:
            header = text.struct()
            return text.at, header
        except IndexError:
            if size >= _LONGEST_HEADER or len(text.text) < size:
                raise
            size *= 16


class _Compact:
    """Thrift's compact protocol: structs as their fields by number. Raises IndexError at the end of
    the text."""

    def __init__(self, text: bytes) -> None:
        self.text, self.at = text, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise ValueError("metadata is nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) & 15:
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 15
            fields[number] = kind == 1 if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2, _BYTE):  # of a list: a byte each
            return self._byte()
        if kind in (4, 5, 6):
            return self._integer()
        if kind == _DOUBLE:
            return self._bytes(8)
        if kind == _BINARY:
            return self._bytes(self._unsigned())
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._unsigned()
            return [self._value(head & 15, depth + 1) for _ in range(count)]
        if kind == _MAP:
            count = self._unsigned()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._value(kinds >> 4, depth + 1)
                self._value(kinds & 15, depth + 1)
            return None
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise ValueError("metadata has a field of unknown type")

    def _byte(self) -> int:
        self.at += 1
        return self.text[self.at - 1]

    def _bytes(self, count: int) -> bytes:
        begin, self.at = self.at, self.at + count
        if self.at > len(self.text):
            raise IndexError
        return self.text[begin : self.at]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("metadata has too long a number")

    def _integer(self) -> int:
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
