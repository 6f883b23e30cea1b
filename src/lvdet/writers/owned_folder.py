"""A folder that only this user owns: files and links placed there by others are not followed."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path

from lvdet.errors import InputError
from lvdet.files.locking import lock_folder
from lvdet.operating_system import OPEN_FILES_STAY, HeldFolder, is_own


class OwnedFolder:
    """Files in a folder by name, opened relative to it and never through a link. Locked until
    `close`.

    refusal: says that another process has it
    """

    def __init__(self, path: Path, lock: str, refusal: str) -> None:
        self.path = path
        if os.path.lexists(path):
            _require_own(os.lstat(path), path)
        else:
            with suppress(FileExistsError):
                path.mkdir(0o700)
        self._lock = lock
        self._locked = lock_folder(path, lock, refusal)
        try:
            self._folder = HeldFolder(path)
        except BaseException:
            self._locked.close()
            raise
        try:
            _require_own(self._folder.status(), path)
            self.require_file(lock)
        except BaseException:
            self.close()
            raise

    def names(self) -> list[str]:
        """The names in the folder, in order."""
        return sorted(self._folder.names())

    def size(self, name: str) -> int:
        """The size of a file in bytes; 0 if it does not exist."""
        return self.require_file(name) if self.has(name) else 0

    def has(self, name: str) -> bool:
        """Whether there is something with this name; it must be one of our files."""
        try:
            self.require_file(name)
        except FileNotFoundError:
            return False
        return True

    def require_file(self, name: str) -> int:
        """Raises for anything but a plain file; returns its size."""
        found = self._folder.status_of(name)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            raise InputError(f"{self.path / name}: not a file of lvdet's; remove the folder")
        return found.st_size

    def begin(self, name: str) -> FileIO:
        """A new file to write."""
        return self._opened(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    def extend(self, name: str) -> FileIO:
        """A file to append to."""
        if not self.has(name):
            return self.begin(name)
        return self._opened(name, os.O_WRONLY | os.O_APPEND)

    def read(self, name: str) -> FileIO:
        """A file to read."""
        self.require_file(name)
        return self._opened(name, os.O_RDONLY)

    def content(self, name: str) -> bytes:
        """The content of a small file."""
        with self.read(name) as file:
            return file.read() or b""

    def remove(self, name: str) -> None:
        """Removes a file or a link, if it exists."""
        with suppress(FileNotFoundError):
            self._folder.remove(name)

    def rename(self, name: str, other: str) -> None:
        """Renames a file within the folder."""
        self._folder.rename(name, other)

    def move_out(self, name: str, target: Path) -> None:
        """Moves a file to a path elsewhere, replacing what is there."""
        self.require_file(name)
        self._folder.move_out(name, target)

    def dissolve(self) -> None:
        """Removes the folder, which then contains only the lock."""
        if OPEN_FILES_STAY:
            self._locked.close()
        self.remove(self._lock)
        with suppress(OSError):  # someone else's file is there, or the next process's lock
            os.rmdir(self.path)

    def close(self) -> None:
        """Releases the lock for other processes."""
        self._folder.close()
        self._locked.close()

    def _opened(self, name: str, flags: int) -> FileIO:
        mode = "wb" if flags & os.O_WRONLY else "rb"
        file = FileIO(self._folder.open(name, flags), mode)
        file.name = name
        return file


def _require_own(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: not a folder, or a link to one; remove it")
    if not is_own(found):
        raise InputError(f"{path}: belongs to another user (uid {found.st_uid}); remove it")
