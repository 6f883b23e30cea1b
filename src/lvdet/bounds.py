"""How large input may be. The native readers' limits are in `native/bounds.hpp`; the table of both
is in `docs/hardening.md`."""

from __future__ import annotations

from lvdet.errors import InputError

#: Bytes that compressed data may unpack to for each of its own, and what it always may.
INFLATION, INFLATED = 64, 1 << 26
#: Bytes up to which a Parquet file's pages are asked what they unpack to, not its metadata alone:
#: in larger files that takes time.
PAGES_ASKED = 1 << 26
#: Bytes that copies of pipes and unpacked files leave free on the disk.
SPARE_DISK = 1 << 30
#: Pixels of a picture that is trained on, predicted or drawn.
PICTURE_PIXELS = 1 << 26
#: Bytes that a file which is read whole, such as a config or a calibrator, may have.
SMALL_FILE = 1 << 26
#: Bytes of address space that `ulimit -v` has to leave.
ADDRESS_SPACE = 1 << 29


def most_inflated(size: int) -> int:
    """The number of bytes that so many may unpack to."""
    return max(INFLATED, INFLATION * size)


def require_inflation(source: str, size: int, unpacked: int) -> None:
    """Raises if a file unpacks to too much for its size."""
    if unpacked > most_inflated(size):
        raise InputError(
            f"{source}: unpacks to {unpacked:,} bytes, expected at most {most_inflated(size):,} "
            f"({INFLATION} for each byte of the file)"
        )
