"""A folder that only this user owns: files and links placed there by others are not followed."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from io import FileIO
from pathlib import Path

from lvdet.errors import InputError
from lvdet.files.locking import lock_folder

_SAFE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


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
            self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _SAFE)
        except BaseException:
            self._locked.close()
            raise
        try:
            _require_own(os.fstat(self._folder), path)
            self.require_file(lock)
        except BaseException:
            self.close()
            raise

    def names(self) -> list[str]:
        """The names in the folder, in order."""
        return sorted(os.listdir(self._folder))

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
        found = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
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
            os.unlink(name, dir_fd=self._folder)

    def rename(self, name: str, other: str) -> None:
        """Renames a file within the folder."""
        os.replace(name, other, src_dir_fd=self._folder, dst_dir_fd=self._folder)

    def move_out(self, name: str, target: Path) -> None:
        """Moves a file to a path elsewhere, replacing what is there."""
        self.require_file(name)
        os.replace(name, target, src_dir_fd=self._folder)

    def dissolve(self) -> None:
        """Removes the folder, which then contains only the lock."""
        self.remove(self._lock)
        with suppress(OSError):  # someone else's file is there, or the next process's lock
            os.rmdir(self.path)

    def close(self) -> None:
        """Releases the lock for other processes."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1
        self._locked.close()

    def _opened(self, name: str, flags: int) -> FileIO:
        descriptor = os.open(name, flags | _SAFE, 0o600, dir_fd=self._folder)
        mode = "rb" if flags & os.O_ACCMODE == os.O_RDONLY else "wb"
        file = FileIO(descriptor, mode)
        file.name = name
        return file


def _require_own(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise InputError(f"{path}: not a folder, or a link to one; remove it")
    if found.st_uid != os.geteuid():
        raise InputError(f"{path}: belongs to another user (uid {found.st_uid}); remove it")
