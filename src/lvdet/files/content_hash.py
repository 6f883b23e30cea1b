"""The hash by which a file is recognised."""

from __future__ import annotations

from hashlib import blake2b
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from lvdet.files.arriving_file import ArrivingFile

#: Files up to this size are hashed whole: larger ones would take as long as they take to evaluate.
WHOLE = 1 << 24
_BLOCK = 1 << 16
_BLOCKS = 64


def hashed_spans(size: int) -> list[tuple[int, int]]:
    """The parts of a file that its hash depends on, as (begin, count)."""
    if size <= WHOLE:
        return [(0, size)]
    return [(number * (size - _BLOCK) // (_BLOCKS - 1), _BLOCK) for number in range(_BLOCKS)]


def content_hash(file: IO[bytes] | ArrivingFile, size: int) -> str:
    """The hash of a file's content. That of a large file is of its size and of 64 blocks of 64 KiB,
    evenly spaced from its first byte to its last, and says so."""
    digest, kind = blake2b(digest_size=16), "blake2b"
    if size > WHOLE:
        kind = "blake2b-sampled"
        digest.update(size.to_bytes(8, "little"))
    for begin, count in hashed_spans(size):
        file.seek(begin)
        digest.update(file.read(count))
    return f"{kind}:{digest.hexdigest()}"
