"""Opening what is read."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.progress import Update

if TYPE_CHECKING:
    import gzip

#: Bytes a thread parses at a time. Small enough that the working memory of all threads is a
#: few megabytes, large enough that handing out chunks costs nothing.
CHUNK = 1 << 21


@contextmanager
def open_plain(path: Path) -> Iterator[IO[bytes]]:
    """A file, seekable and uncompressed: gzip, pipes and standard input ("-") go through a
    temporary file, so that all threads can read and memory stays bounded."""
    try:
        with ExitStack() as stack:
            file: IO[bytes] = (
                sys.stdin.buffer if str(path) == "-" else stack.enter_context(open(path, "rb"))
            )
            if str(path) == "-" or not file.seekable():
                file = _spooled(stack, file)
            if file.read(2) == b"\x1f\x8b":
                import gzip

                file.seek(0)
                try:
                    file = _spooled(stack, gzip.GzipFile(fileobj=file))
                except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                    raise InputError(f"{path}: corrupt gzip data ({error})") from None
            yield file
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def _spooled(stack: ExitStack, source: IO[bytes] | gzip.GzipFile) -> IO[bytes]:
    """The content as a temporary file, at its beginning."""
    file = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
    shutil.copyfileobj(source, file, 1 << 20)
    file.flush()
    file.seek(0)
    return file


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
    """A part of the progress for each file, by size."""
    if update is None or len(paths) == 1:
        return [update] * len(paths)
    sizes = [path.stat().st_size if path.is_file() else 1 for path in paths]
    *starts, total = accumulate(sizes, initial=0)

    def share(start: int, size: int) -> Update:
        return lambda done, of: update(start + size * done // max(of, 1), total)

    return [share(start, size) for start, size in zip(starts, sizes, strict=True)]


def expand(source: str | os.PathLike[str]) -> list[Path]:
    """The files meant by a path, a folder or a pattern, in order of name."""
    text = os.fspath(source)
    path = Path(text)
    if text == "-" or path.is_file():
        return [path]
    if path.is_dir():
        found = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        if not found:
            raise InputError(f"{text}: the folder is empty")
        return found
    if glob.has_magic(text):
        found = sorted(Path(p) for p in glob.glob(text, recursive=True) if Path(p).is_file())
        if not found:
            raise InputError(f"{text}: no files match")
        return found
    if not path.exists():
        raise InputError(f"{text}: no such file")
    return [path]
