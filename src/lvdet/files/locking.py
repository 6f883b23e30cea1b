"""Folders that one process at a time may write to."""

from __future__ import annotations

import errno
import os
from io import FileIO
from pathlib import Path

from lvdet.errors import InputError, OutputError
from lvdet.files.writing import make_folder
from lvdet.operating_system import SAFE, lock


def make_and_lock(folder: Path, name: str, work: str) -> FileIO:
    """Makes the folder with its parents and locks it; `work` names what another process may be
    doing there."""
    make_folder(folder)
    try:
        return lock_folder(folder, name, f"{folder}: another process is {work} here")
    except OSError as error:
        raise OutputError(f"{folder}: cannot write: {error.strerror}") from None


def lock_folder(folder: Path, name: str, refusal: str) -> FileIO:
    """Opens and locks a file in the folder, creating it if necessary. Its previous owner may just
    have removed the folder."""
    while True:
        folder.mkdir(exist_ok=True)
        try:
            file = FileIO(folder / name, "ab", opener=_opened)
        except FileNotFoundError:
            if os.path.islink(folder):  # to nowhere
                raise
            continue
        try:
            lock(file)
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
    """Opens a lock file without following links or waiting for a pipe."""
    return os.open(path, flags | SAFE, 0o666)
