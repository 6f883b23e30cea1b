"""Folders that one process at a time may write to."""

from __future__ import annotations

import errno
import fcntl
import os
from io import FileIO
from pathlib import Path

from lvdet.errors import InputError, OutputError
from lvdet.files.writing import make_folder


def make_and_lock(folder: Path, name: str, work: str) -> FileIO:
    """Makes the folder with its parents, and locks it; `work` is what another process may be
    doing there."""
    make_folder(folder)
    try:
        return lock_folder(folder, name, f"{folder}: another process is {work} here")
    except OSError as error:
        raise OutputError(f"{folder}: cannot write: {error.strerror}") from None


def lock_folder(folder: Path, name: str, refusal: str) -> FileIO:
    """A file in the folder, made where it is not there, that no other process has while it is
    open. The one that had it may have just removed the folder. refusal: says that one has it."""
    while True:
        folder.mkdir(exist_ok=True)
        try:
            file = FileIO(folder / name, "ab", opener=_opened)
        except FileNotFoundError:
            if os.path.islink(folder):  # to nowhere
                raise
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), os.lstat(folder / name)):
                return file
        except BlockingIOError:
            file.close()
            raise InputError(refusal) from None
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOTSUP):
                return file  # a file system without locks
            file.close()
            raise
        file.close()


def _opened(path: str, flags: int) -> int:
    """Opens a lock: no link to something else, and no pipe to wait for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
