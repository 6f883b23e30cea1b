"""Opens files to read."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lvdet.bounds import SMALL_FILE
from lvdet.errors import InputError
from lvdet.files.progress import Update

#: Bytes a thread parses at a time. Small enough that the working memory of all threads is a
#: few megabytes, large enough that handing out chunks costs nothing.
CHUNK = 1 << 21
#: How compressed files begin.
GZIP = b"\x1f\x8b"


@contextmanager
def open_plain(path: Path) -> Iterator[IO[bytes]]:
    """A seekable, uncompressed file. Gzip files, pipes and standard input ("-") are copied to a
    temporary file, so that all threads can read and memory stays bounded."""
    try:
        with ExitStack() as stack:
            file: IO[bytes] = (
                sys.stdin.buffer if str(path) == "-" else stack.enter_context(open(path, "rb"))
            )
            if str(path) == "-" or not file.seekable():
                from lvdet.files.spooling import spooled

                file = spooled(stack, file)
            if file.read(2) == GZIP:
                from lvdet.files.spooling import unpacked

                file.seek(0)
                file = unpacked(stack, file, path)
            yield file
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def read_small(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that is read whole, such as a config. Raises OSError."""
    with open(path, "rb") as file:
        content = file.read(SMALL_FILE + 1)
    if len(content) > SMALL_FILE:
        raise InputError(f"{os.fspath(path)}: has more than {SMALL_FILE:,} bytes")
    return content


def run_reader(
    read: Callable[[NDArray[np.int64]], dict[str, Any]],
    size: int,
    update: Update | None,
    begin: int = 0,
) -> dict[str, Any]:
    """Calls a native reader on a thread, with news of its progress; an interrupt stops it.

    `read` gets an array of two int64: the reader adds the bytes it has read to the first, which
    is `begin` before, and stops when the second is not 0.
    """
    control = np.array([begin, 0], dtype=np.int64)
    outcome: list[dict[str, Any] | BaseException] = []
    ended = threading.Event()  # Thread.join, once interrupted, waits no more

    def work() -> None:
        try:
            outcome.append(read(control))
        except BaseException as error:
            outcome.append(error)
        ended.set()

    try:
        threading.Thread(target=work).start()
    except RuntimeError:  # the system allows no more threads
        work()
    try:
        while not ended.wait(0.05):
            if update is not None:
                update(int(control[0]), size)
    except BaseException:
        control[1] = 1
        ended.wait()
        raise
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def shares(paths: list[Path], update: Update | None) -> list[Update | None]:
    """The share of the progress of each file, by size."""
    if update is None or len(paths) == 1:
        return [update] * len(paths)
    sizes = [path.stat().st_size if path.is_file() else 1 for path in paths]
    *starts, total = accumulate(sizes, initial=0)

    def share(start: int, size: int) -> Update:
        return lambda done, of: update(start + size * done // max(of, 1), total)

    return [share(start, size) for start, size in zip(starts, sizes, strict=True)]


def expand(source: str | os.PathLike[str]) -> list[Path]:
    """The files matching a path, a folder or a pattern, in order of name."""
    text = os.fspath(source)
    try:
        return _expanded(text)
    except OSError as error:  # in a folder that may not be read, or too long a name
        raise InputError(f"{text}: {error.strerror or error}") from None


def _expanded(text: str) -> list[Path]:
    path = Path(text)
    if text == "-" or path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        if not found:
            raise InputError(f"{text}: the folder is empty")
        return found
    if any(letter in text for letter in "*?["):
        import glob

        found = sorted(Path(p) for p in glob.glob(text, recursive=True) if Path(p).is_file())
        if not found:
            raise InputError(f"{text}: no files match")
        return found
    if not path.exists():
        raise InputError(f"{text}: no such file")
    return [path]
