"""The sizes and hashes of the files that were read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

#: Files up to this size are hashed whole: larger ones would take as long as they take to evaluate.
WHOLE = 1 << 24
_BLOCK = 1 << 16
_BLOCKS = 64


def fingerprints(paths: Iterable[str | os.PathLike[str]]) -> list[dict[str, Any]]:
    """The path, size and hash of each regular file.

    A large file's hash is of its size and 64 blocks of 64 KiB, evenly spaced from its first byte to
    its last, and says so: "blake2b-sampled:…" in place of "blake2b:…".
    """
    return [_fingerprint(Path(path)) for path in paths if Path(path).is_file()]


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest, kind = blake2b(digest_size=16), "blake2b"
        if size <= WHOLE:
            digest.update(file.read())
        else:
            kind = "blake2b-sampled"
            digest.update(size.to_bytes(8, "little"))
            for number in range(_BLOCKS):
                file.seek(number * (size - _BLOCK) // (_BLOCKS - 1))
                digest.update(file.read(_BLOCK))
    return {"path": str(path), "bytes": size, "hash": f"{kind}:{digest.hexdigest()}"}
