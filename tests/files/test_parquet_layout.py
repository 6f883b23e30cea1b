"""Parquet's metadata, byte by byte: what Thrift's compact protocol defines, and damage to it."""

from __future__ import annotations

import io

import pytest

from lvdet.errors import InputError
from lvdet.files.parquet_layout import Chunk, read_layout


def number(value: int) -> bytes:
    """A varint."""
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def integer(value: int) -> bytes:
    return number(value << 1 if value >= 0 else (-value << 1) - 1)


def field(step: int, kind: int, value: bytes = b"") -> bytes:
    return bytes([step << 4 | kind]) + value


def structs(*items: bytes) -> bytes:
    """A list of structs."""
    return bytes([len(items) << 4 | 12]) + b"".join(items)


def footer(
    *, size: int = 100, begin: int = 4, packed: int = 40, more: bytes = b"", values: int = 5
) -> bytes:
    """Metadata of one row group of 3 rows with a column "x"."""
    path = bytes([1 << 4 | 8]) + number(1) + b"x"
    column = (
        field(3, 9, path)
        + field(2, 6, integer(values))
        + field(1, 6, integer(size))
        + field(1, 6, integer(packed))
        + field(2, 6, integer(begin))
        + b"\0"
    )
    chunk = field(3, 12, column) + b"\0"
    group = field(1, 9, structs(chunk)) + field(2, 6, integer(3)) + b"\0"
    return field(4, 9, structs(group)) + more + b"\0"


def page(unpacked: int, packed: int) -> bytes:
    """A header, and as many bytes as it says."""
    header = field(2, 5, integer(unpacked)) + field(1, 5, integer(packed)) + b"\0"
    return header + bytes(max(packed, 0))


def file(metadata: bytes, pages: bytes = b"") -> io.BytesIO:
    body = b"PAR1" + pages + metadata
    return io.BytesIO(body + len(metadata).to_bytes(4, "little") + b"PAR1")


def read(content: io.BytesIO) -> Chunk:
    (group,) = read_layout(content, "r.parquet", ["x"], pages=True)
    assert group.rows == 3
    return group.chunks[0]


def test_pages_say_more_than_the_metadata() -> None:
    pages = page(500, 10) + page(70, 6)
    assert read(file(footer(packed=len(pages)), pages)) == Chunk("x", 5, 570, 4, len(pages))
    assert read(file(footer(size=900, packed=len(pages)), pages)).unpacked == 900


def test_fields_of_every_kind_are_skipped() -> None:
    pages = page(7, 0)
    entries = b"\x02" + bytes([3 << 4 | 5]) + b"\x01" + integer(5) + b"\x02" + integer(-6)
    more = (
        field(1, 11, entries)  # a map of two bytes to integers
        + field(1, 11, b"\0")
        + field(1, 7, bytes(8))
        + field(1, 1)
        + field(1, 10, bytes([2 << 4 | 2]) + b"\x01\x02")
        + field(0, 3, integer(90) + b"\x05")  # the number in full
        + field(1, 9, bytes([15 << 4 | 3]) + number(20) + bytes(20))
        + field(1, 12, field(1, 2) + b"\0")
    )
    assert read(file(footer(packed=len(pages), more=more), pages)).unpacked == 100


def test_a_header_longer_than_one_reading() -> None:
    """A header with 5,000 bytes of statistics is read with more of the file."""
    long = field(2, 5, integer(9)) + field(1, 5, integer(0)) + field(2, 8, number(5000))
    pages = long + bytes(5000) + b"\0"
    assert read(file(footer(size=1, packed=len(pages)), pages)).unpacked == 9


DAMAGED = {
    "no metadata at its end": io.BytesIO(b"PAR1 and so on"),
    "a page has a negative size": file(footer(packed=9), page(-5, 3)),
    "metadata is nested too deeply": file(field(4, 12, field(1, 12) * 30)),
    "metadata has too long a number": file(field(1, 6, b"\xff" * 12)),
    "metadata has a field of unknown type": file(field(1, 13)),
    "damaged metadata": file(field(4, 8, number(1 << 30))),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_told_in_one_line(what: str) -> None:
    with pytest.raises(InputError, match=f"^r.parquet: invalid Parquet file: {what}$"):
        read(DAMAGED[what])


def test_a_header_that_does_not_end() -> None:
    with pytest.raises(InputError, match="damaged metadata"):
        read(file(footer(begin=4 + 10**6, packed=9)))
