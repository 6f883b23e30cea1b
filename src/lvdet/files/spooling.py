"""Temporary files for data that cannot be read in place: pipes and compressed data."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from contextlib import ExitStack
from typing import IO

from lvdet.errors import InputError
from lvdet.files.remote_path import InputPath


def spooled(stack: ExitStack, source: IO[bytes]) -> IO[bytes]:
    """The content as a temporary file, positioned at its start."""
    return _copied(stack, source)


def unpacked(stack: ExitStack, source: IO[bytes], path: InputPath) -> IO[bytes]:
    """The content of a gzip file as a temporary file, positioned at its start."""
    try:
        return _copied(stack, gzip.GzipFile(fileobj=source))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: corrupt gzip data ({error})") from None


def unpacked_head(packed: IO[bytes], size: int) -> bytes:
    """The first bytes of a gzip file's content; empty if it is corrupt."""
    try:
        return gzip.GzipFile(fileobj=packed).read(size)
    except (OSError, EOFError, zlib.error):
        return b""


def _copied(stack: ExitStack, source: IO[bytes] | gzip.GzipFile) -> IO[bytes]:
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(source, file, 1 << 20)
    file.flush()
    file.seek(0)
    return file
