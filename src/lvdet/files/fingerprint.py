"""The sizes and hashes of the files that were read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from lvdet.files.content_hash import content_hash
from lvdet.files.remote_path import InputPath, RemotePath, input_path


def fingerprints(paths: Iterable[str | os.PathLike[str]]) -> list[dict[str, Any]]:
    """The path, size and hash of each regular file.

    A large file's hash is of its size and 64 blocks of 64 KiB, evenly spaced from its first byte to
    its last, and says so: "blake2b-sampled:…" in place of "blake2b:…".
    """
    found = map(input_path, paths)
    return [_fingerprint(path) for path in found if path.is_file()]


def _fingerprint(path: InputPath) -> dict[str, Any]:
    if isinstance(path, RemotePath):
        return path.fingerprint()
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        return {"path": str(path), "bytes": size, "hash": content_hash(file, size)}
