"""Paths of remote files, and what they look like to those who read them."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote, urlsplit

from lvdet.errors import InputError
from lvdet.files.arriving_file import ArrivingFile
from lvdet.files.content_hash import content_hash, hashed_spans

if TYPE_CHECKING:
    from lvdet.files.arriving import Arriving
    from lvdet.files.stores import Stored

#: Bytes, and files, that are fetched ahead of the file being read. One file is, whatever its size.
AHEAD, FILES_AHEAD = 1 << 30, 16
#: How addresses begin; `pathlib` makes one slash of two.
_ADDRESS = re.compile(r"(s3|gs|hf):/{1,2}(?=[^/])")


class RemotePath(os.PathLike[str]):
    """The address of an object. Once a version has been read, any other is refused."""

    def __init__(self, address: str, size: int | None = None) -> None:
        self._address, self._size = address, size
        self._version: str | None = None
        self._arriving: Arriving | None = None
        self._hash: str | None = None

    def __reduce__(self) -> tuple[type[RemotePath], tuple[str, int | None]]:
        return RemotePath, (self._address, self._size)  # other processes fetch it themselves

    def __fspath__(self) -> str:
        return self._address

    def __str__(self) -> str:
        return self._address

    def __repr__(self) -> str:
        return f"RemotePath({self._address!r})"

    @property
    def suffix(self) -> str:
        return PurePosixPath(self._address).suffix

    @property
    def suffixes(self) -> list[str]:
        return PurePosixPath(self._address).suffixes

    def is_file(self) -> bool:
        """True: it can be read more than once."""
        return True

    @property
    def size(self) -> int:
        """The size of the object, if need be by a request."""
        if self._size is None:
            self._size = self.look().size
        return self._size

    def arriving(self) -> Arriving:
        """The content, of which nothing is fetched before it is wanted or read."""
        from lvdet.files.arriving import Arriving

        if self._arriving is None:
            self._arriving = Arriving(self.look)
        return self._arriving

    def end(self) -> None:
        """Removes what has been fetched."""
        if self._arriving is not None:
            self._arriving.close()
            self._arriving = None

    def look(self) -> Stored:
        """The object as it is now, which has to be what it was before."""
        from lvdet.files.stores import open_stored

        stored = open_stored(self._address)
        if self._version is None:
            self._version = stored.version
        elif self._version != stored.version:
            raise InputError(f"{self._address}: changed while it was being read")
        self._size = stored.size
        return stored

    @contextmanager
    def reading(self) -> Iterator[ArrivingFile]:
        """The content. At the end the object has to be what it was at the beginning."""
        arriving = self.arriving()
        try:
            yield ArrivingFile(arriving)
            self.look()
            if arriving.whole:
                self._hash = content_hash(ArrivingFile(arriving), arriving.stored.size)
        except Exception:
            arriving.check()
            self.look()
            raise
        finally:
            self.end()

    def fingerprint(self) -> dict[str, Any]:
        """Address, size and hash, as of a local file."""
        if self._hash is None:
            arriving = self.arriving()
            arriving.want(hashed_spans(arriving.stored.size))
            self._hash = content_hash(ArrivingFile(arriving), arriving.stored.size)
            self.end()
        return {"path": self._address, "bytes": self.size, "hash": self._hash}


#: What is read: a local file, or one in a store.
InputPath: TypeAlias = Path | RemotePath


def input_path(source: str | os.PathLike[str]) -> InputPath:
    """The path that a text stands for: an address (s3://, gs://, hf://, file://) or a local one."""
    if isinstance(source, RemotePath):
        return source
    text = os.fspath(source)
    if text.startswith("file:"):
        return Path(unquote(urlsplit(text).path))
    address = remote_address(text)
    return Path(text) if address is None else RemotePath(address)


def remote_address(source: str | os.PathLike[str]) -> str | None:
    """The address of something in a store; None for a local path."""
    text = os.fspath(source)
    found = _ADDRESS.match(text)
    if found is not None:
        return f"{found[1]}://{text[found.end() :]}"
    other = re.match(r"(?!file:)([a-z][a-z0-9+.-]+)://", text)
    if other is not None:
        raise InputError(f"{text}: {other[1]}:// is not supported, expected s3, gs, hf or file")
    return None


def expand_remote(address: str) -> list[RemotePath]:
    """The objects matching an address, a folder or a pattern, in order of name."""
    if any(letter in address for letter in "*?["):
        found = sorted(_matching(address), key=lambda one: one[0].split("/"))
        if not found:
            raise InputError(f"{address}: no files match")
        return [RemotePath(name, size) for name, size in found]
    if not address.endswith("/"):
        path = RemotePath(address)
        try:
            path.look()
            return [path]
        except InputError as error:
            if not str(error).endswith(": no such file"):
                raise
            missing = error
    else:
        missing = InputError(f"{address}: no such folder, or it is empty")
    from lvdet.files.stores import list_stored

    found = sorted(one for one in list_stored(address) if not _name(one[0]).startswith("."))
    if not found:
        raise missing
    return [RemotePath(name, size) for name, size in found]


def _name(address: str) -> str:
    return address.rpartition("/")[2]


def _matching(pattern: str) -> Iterator[tuple[str, int]]:
    """The addresses and sizes that match, folder by folder; ** is any number of folders."""
    from lvdet.files.stores import list_folders, list_stored

    scheme, _, key = pattern.partition("://")
    parts = key.split("/")
    fixed = next(place for place, part in enumerate(parts) if any(one in part for one in "*?["))
    fixed = max(fixed, 1)
    folders = [f"{scheme}://{'/'.join(parts[:fixed])}"]
    for place in range(fixed, len(parts)):
        if parts[place] == "**":
            for folder in folders:
                for name, size in list_stored(folder, deep=True):
                    if _matches(name[len(folder) + 1 :].split("/"), parts[place:]):
                        yield name, size
            return
        if place == len(parts) - 1:
            break
        below = [one for folder in folders for one in list_folders(folder)]
        folders = [one for one in below if _fits(_name(one), parts[place])]
    for folder in folders:
        for name, size in list_stored(folder):
            if _fits(_name(name), parts[-1]):
                yield name, size


def _fits(name: str, pattern: str) -> bool:
    hidden = name.startswith(".") and not pattern.startswith(".")
    return not hidden and fnmatch.fnmatchcase(name, pattern)


def _matches(names: list[str], parts: list[str]) -> bool:
    """Whether the names of nested folders and a file fit a pattern, part by part."""
    if not parts:
        return not names
    if parts[0] != "**":
        return bool(names) and _fits(names[0], parts[0]) and _matches(names[1:], parts[1:])
    shown = next((k for k, name in enumerate(names) if name.startswith(".")), len(names))
    if len(parts) == 1:
        return shown == len(names)
    return any(_matches(names[k:], parts[1:]) for k in range(shown + 1))


def in_turn(
    paths: Sequence[InputPath], begin: Callable[[RemotePath], None]
) -> Generator[InputPath, None, None]:
    """The paths in order. `begin` is called with each remote path and with those that follow, so
    that they arrive meanwhile. What has arrived for one path is removed before the next."""
    begun: set[RemotePath] = set()
    try:
        for place, path in enumerate(paths):
            room = AHEAD
            for number, later in enumerate(paths[place : place + 1 + FILES_AHEAD]):
                if not isinstance(later, RemotePath):
                    continue
                room -= later.size if number > 0 else 0
                if number > 1 and room < 0:
                    break
                if later not in begun:
                    begun.add(later)
                    begin(later)
            yield path
            if isinstance(path, RemotePath):
                path.end()
    finally:
        for path in paths:
            if isinstance(path, RemotePath):
                path.end()
