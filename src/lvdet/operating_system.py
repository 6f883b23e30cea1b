"""What operating systems do differently with files.

POSIX removes and replaces files that are open, so files in use are locked. Windows does neither;
what must go is closed first, and nothing else has to be locked there.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import IO, Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

#: Whether a file that is open can neither be removed nor replaced.
OPEN_FILES_STAY = sys.platform == "win32"
#: Flags to open a file with: never a link, without waiting for a pipe, not for child processes.
if sys.platform == "win32":
    SAFE = os.O_BINARY | os.O_NOINHERIT
else:
    SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def lock(file: FileIO) -> None:
    """Locks a file that nobody writes to; raises `BlockingIOError` if another process has done
    so. The lock ends with the process, if not earlier."""
    if sys.platform == "win32":
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                raise BlockingIOError from None
            raise
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def mark_in_use(file: IO[bytes]) -> None:
    """Marks a file that is being written, so that `remove_unused` leaves it alone."""
    if sys.platform != "win32":
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_unused(path: Path) -> None:
    """Removes a file; raises `OSError` if a process has it in use."""
    if sys.platform == "win32":
        path.unlink()
    else:
        descriptor = os.open(path, os.O_RDONLY | SAFE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
        finally:
            os.close(descriptor)


def set_mode(file: IO[bytes], mode: int) -> None:
    """Sets who may read and write an open file. Windows has no such modes."""
    if sys.platform != "win32":
        os.fchmod(file.fileno(), mode)


def is_own(found: os.stat_result) -> bool:
    """Whether this user owns a file; on Windows, where a folder's owner decides, always."""
    return sys.platform == "win32" or found.st_uid == os.geteuid()


def write_pieces(file: FileIO, pieces: Sequence[Any]) -> int:
    """Writes bytes in order, in one call that may write a part of them; returns how many."""
    if sys.platform == "win32":
        return file.write(b"".join(pieces))
    else:  # noqa: RET505  mypy reads it only so
        return os.writev(file.fileno(), pieces)


def content(file: FileIO) -> mmap.mmap | bytes:
    """The content of a file that is not empty, mapped where the file can nevertheless be
    replaced."""
    if OPEN_FILES_STAY:
        return file.readall()
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class PlacedFile:
    """A temporary file without a name, which threads read and write at places, with no effect on
    others that read its descriptor."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        if sys.platform == "win32":
            # Reading moves the position of a descriptor there. This one is not for others.
            self._own = os.open(self._file.name, os.O_RDWR | os.O_TEMPORARY | SAFE)
            self._guard = threading.Lock()

    def fileno(self) -> int:
        """The descriptor for others."""
        return self._file.fileno()

    def truncate(self, size: int) -> None:
        """Makes it this large."""
        os.ftruncate(self._file.fileno(), size)

    def read(self, begin: int, count: int) -> bytes:
        """These bytes; fewer at the end of the file."""
        if sys.platform == "win32":
            with self._guard:
                os.lseek(self._own, begin, os.SEEK_SET)
                return os.read(self._own, count)
        else:
            return os.pread(self._file.fileno(), count, begin)

    def write(self, begin: int, content: bytes) -> None:
        """Replaces the bytes from a place on."""
        left = memoryview(content)
        while left:
            if sys.platform == "win32":
                with self._guard:
                    os.lseek(self._own, begin, os.SEEK_SET)
                    put = os.write(self._own, left)
            else:
                put = os.pwrite(self._file.fileno(), left, begin)
            begin, left = begin + put, left[put:]

    def close(self) -> None:
        """Closes it, and with it the file is gone."""
        if sys.platform == "win32" and not self._file.closed:
            os.close(self._own)
        self._file.close()


def sync_folder(folder: Path) -> None:
    """Waits until the entries of a folder are on disk; Windows does so without being told."""
    if sys.platform != "win32":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def core_count() -> int:
    """The cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    else:  # noqa: RET505  mypy reads it only so
        return os.cpu_count() or 1


class HeldFolder:
    """A folder by its path, whose files are opened relative to it where the system can: whatever
    is put in its place later is not it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        if sys.platform != "win32" and not OPEN_FILES_STAY:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | SAFE)

    def status(self) -> os.stat_result:
        """Of the folder itself."""
        if self._descriptor is None:
            return os.lstat(self._path)
        return os.fstat(self._descriptor)

    def names(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self._path if self._descriptor is None else self._descriptor)

    def open(self, name: str, flags: int) -> int:
        """A descriptor of a file, never through a link."""
        return os.open(self._at(name), flags | SAFE, 0o600, dir_fd=self._descriptor)

    def status_of(self, name: str) -> os.stat_result:
        """Of a file or a link."""
        return os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)

    def remove(self, name: str) -> None:
        """Removes a file or a link."""
        os.unlink(self._at(name), dir_fd=self._descriptor)

    def rename(self, name: str, other: str) -> None:
        """Renames a file within the folder, replacing what is there."""
        at = self._descriptor
        os.replace(self._at(name), self._at(other), src_dir_fd=at, dst_dir_fd=at)

    def move_out(self, name: str, target: Path) -> None:
        """Moves a file to a path elsewhere, replacing what is there."""
        os.replace(self._at(name), target, src_dir_fd=self._descriptor)

    def close(self) -> None:
        """Closes the folder."""
        if self._descriptor is not None and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else os.path.join(self._path, name)
