"""Temporary files for data that cannot be read in place: pipes and compressed data."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from contextlib import ExitStack
from typing import IO

from lvdet.bounds import INFLATION, SPARE_DISK, most_inflated
from lvdet.errors import InputError, LvdetError
from lvdet.files.opening import size_of
from lvdet.files.remote_path import InputPath

_BLOCK = 1 << 20
#: Bytes after which the free space of the disk is looked at again.
_CHECKED = 1 << 28


def spooled(stack: ExitStack, source: IO[bytes]) -> IO[bytes]:
    """The content as a temporary file, positioned at its start."""
    return _copied(stack, source)


def unpacked(stack: ExitStack, source: IO[bytes], path: InputPath) -> IO[bytes]:
    """The content of a gzip file as a temporary file, positioned at its start."""
    most = most_inflated(size_of(source))
    try:
        return _copied(stack, gzip.GzipFile(fileobj=source), most)
    except _TooLongError:
        raise InputError(
            f"{path}: unpacks to more than {most:,} bytes, {INFLATION} for each byte of the file; "
            "if it is to be trusted, unpack it first"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: corrupt gzip data ({error})") from None


def unpacked_head(packed: IO[bytes], size: int) -> bytes:
    """The first bytes of a gzip file's content; empty if it is corrupt."""
    try:
        return gzip.GzipFile(fileobj=packed).read(size)
    except (OSError, EOFError, zlib.error):
        return b""


class _TooLongError(Exception):
    """There is more to copy than there may be."""


def _copied(
    stack: ExitStack, source: IO[bytes] | gzip.GzipFile, most: int | None = None
) -> IO[bytes]:
    folder, done, checked = "", 0, 0
    try:
        folder = tempfile.gettempdir()
        file = stack.enter_context(tempfile.TemporaryFile(dir=folder, buffering=0))  # noqa: SIM115
    except OSError as error:
        raise _cannot_hold(folder, error) from None
    while block := source.read(_BLOCK):
        done += len(block)
        if most is not None and done > most:
            raise _TooLongError
        try:
            if done >= checked:
                checked = done + _CHECKED
                if done > _CHECKED and shutil.disk_usage(folder).free < SPARE_DISK:
                    raise OSError(0, "less than 1 GiB would be left free")
            while block:
                block = block[file.write(block) :]
        except OSError as error:
            raise _cannot_hold(folder, error) from None
    file.seek(0)
    return file


def _cannot_hold(folder: str, error: OSError) -> LvdetError:
    return LvdetError(
        f"{folder or 'TMPDIR'}: cannot write a temporary file: {error.strerror or error} "
        "(set TMPDIR to a folder with more space)"
    )
