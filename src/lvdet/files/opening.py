"""Opens files to read."""

from __future__ import annotations

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from lvdet.bounds import SMALL_FILE
from lvdet.errors import InputError
from lvdet.files.arriving_file import ArrivingFile
from lvdet.files.progress import Update
from lvdet.files.remote_path import (
    InputPath,
    RemotePath,
    expand_remote,
    input_path,
    remote_address,
)

#: Bytes a thread parses at a time. Small enough that the working memory of all threads is a
#: few megabytes, large enough that handing out chunks costs nothing.
CHUNK = 1 << 21
#: How compressed files begin.
GZIP = b"\x1f\x8b"


def open_file(path: InputPath) -> AbstractContextManager[IO[bytes]]:
    """A file as it is, to be read as a whole."""
    if not isinstance(path, RemotePath):
        return open(path, "rb")
    path.arriving().want_all()
    return cast(AbstractContextManager[IO[bytes]], path.reading())


def read_small(path: str | os.PathLike[str]) -> bytes:
    """The content of a file that is read whole, such as a config. Raises OSError."""
    with open_file(input_path(path)) as file:
        content = file.read(SMALL_FILE + 1)
    if len(content) > SMALL_FILE:
        raise InputError(f"{os.fspath(path)}: has more than {SMALL_FILE:,} bytes")
    return content


def size_of(file: IO[bytes]) -> int:
    """The size of a seekable file, which is then at its beginning."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


@contextmanager
def open_plain(path: InputPath) -> Iterator[IO[bytes]]:
    """A seekable, uncompressed file. Gzip files, pipes and standard input ("-") are copied to a
    temporary file, so that all threads can read and memory stays bounded."""
    try:
        with ExitStack() as stack:
            file: IO[bytes] = (
                sys.stdin.buffer if str(path) == "-" else stack.enter_context(open_file(path))
            )
            if str(path) == "-" or not file.seekable():
                from lvdet.files.spooling import spooled

                file = spooled(stack, file)
            if file.read(2) == GZIP:
                from lvdet.files.spooling import unpacked

                file.seek(0)
                file = unpacked(stack, buffered(file), path)
            yield file
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def buffered(file: IO[bytes]) -> IO[bytes]:
    """The same file; if it is still arriving, not fetched in small pieces."""
    if not isinstance(file, ArrivingFile):
        return file
    return io.BufferedReader(file, 1 << 20)


def watched(file: IO[bytes], control: NDArray[np.int64]) -> NDArray[np.int64]:
    """The control array of a reader that is to wait for what it reads of the file."""
    if isinstance(file, ArrivingFile):
        file.arriving.watch(control)
    return control


def run_reader(
    read: Callable[[NDArray[np.int64]], dict[str, Any]],
    size: int,
    update: Update | None,
    begin: int = 0,
) -> dict[str, Any]:
    """Calls a native reader on a thread, with news of its progress; an interrupt stops it.

    `read` gets an array of three int64: the reader adds the bytes it has read to the first, which
    is `begin` before, stops when the second is not 0, and waits for bytes beyond the third.
    """
    control = np.array([begin, 0, np.iinfo(np.int64).max], dtype=np.int64)
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


def shares(paths: list[InputPath], update: Update | None) -> list[Update | None]:
    """The share of the progress of each file, by size."""
    if update is None or len(paths) == 1:
        return [update] * len(paths)
    sizes = [_size(path) for path in paths]
    *starts, total = accumulate(sizes, initial=0)

    def share(start: int, size: int) -> Update:
        return lambda done, of: update(start + size * done // max(of, 1), total)

    return [share(start, size) for start, size in zip(starts, sizes, strict=True)]


def _size(path: InputPath) -> int:
    if isinstance(path, RemotePath):
        return path.size
    return path.stat().st_size if path.is_file() else 1


def expand(source: str | os.PathLike[str]) -> list[InputPath]:
    """The files matching a path, a folder or a pattern, in order of name."""
    if isinstance(source, RemotePath):
        return [source]
    address = remote_address(source)
    if address is not None:
        return [*expand_remote(address)]
    path = Path(input_path(source))
    text = str(path) if os.fspath(source).startswith("file:") else os.fspath(source)
    try:
        return _expanded(path, text)
    except OSError as error:  # in a folder that may not be read, or too long a name
        raise InputError(f"{text}: {error.strerror or error}") from None


def _expanded(path: Path, text: str) -> list[InputPath]:
    if text == "-" or path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        if not found:
            raise InputError(f"{text}: the folder is empty")
        return [*found]
    if any(letter in text for letter in "*?["):
        import glob

        found = sorted(Path(p) for p in glob.glob(text, recursive=True) if Path(p).is_file())
        if not found:
            raise InputError(f"{text}: no files match")
        return [*found]
    if not path.exists():
        raise InputError(f"{text}: no such file")
    return [path]
