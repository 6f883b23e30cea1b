"""Writes files atomically: whole or not at all."""

from __future__ import annotations

import os
import stat
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lvdet.errors import InputError, OutputError
from lvdet.files.remote_path import remote_address
from lvdet.operating_system import (
    OPEN_FILES_STAY,
    SAFE,
    is_own,
    mark_in_use,
    remove_unused,
    set_mode,
)

#: Seconds for which a part that nobody has locked is left alone: it may be about to be.
_FRESH = 60


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that appears under its name only once it is complete.

    Links are followed: their target is written. Pipes and devices are written into, because they
    cannot be replaced. A replaced file keeps its mode.
    """
    require_local(path)
    target = Path(os.path.realpath(path))
    checksum = f"{zlib.crc32(os.fsencode(target.name)):08x}"
    unique = f"{checksum}-{os.getpid():x}-{time.monotonic_ns():x}"
    temporary = target.with_name(f".lvdet-{unique}.part")
    made = False
    try:
        if is_special(target):
            with open(target, "wb") as file:
                yield file
            return
        _remove_stale(target.parent, checksum)
        with open(temporary, "xb", opener=_opened) as file:
            made = True
            mark_in_use(file)
            with suppress(FileNotFoundError):
                set_mode(file, stat.S_IMODE(os.stat(target).st_mode) & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if OPEN_FILES_STAY:
                file.close()
            os.replace(temporary, target)
            made = False
    except OSError as error:
        raise OutputError(f"{os.fspath(path)}: cannot write: {error.strerror or error}") from None
    finally:
        if made:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _opened(path: str, flags: int) -> int:
    """Creates a file that did not exist; fails if anything is in its place."""
    return os.open(path, flags | os.O_EXCL | SAFE, 0o666)


def _remove_stale(folder: Path, checksum: str) -> None:
    """Removes partial files left by killed processes that wrote the same target: those old enough
    to have been locked that nobody has locked."""
    for part in folder.glob(f".lvdet-{checksum}-*.part"):
        with suppress(OSError):
            found = os.lstat(part)
            old = time.time() - found.st_mtime > _FRESH
            if old and stat.S_ISREG(found.st_mode) and is_own(found):
                remove_unused(part)


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Writes text atomically."""
    with write_whole(path) as file:
        file.write(text.encode(errors="replace"))


def write_json(content: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes human-readable JSON atomically."""
    import json

    write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", path)


def require_local(path: str | os.PathLike[str]) -> None:
    """Raises for an address in a store: only local files can be written whole or not at all."""
    address = remote_address(path)
    if address is not None:
        raise InputError(f"{address}: outputs are local files: write one and copy it there")


def require_ending(path: str | os.PathLike[str], endings: Sequence[str]) -> str:
    """The extension of a file, in lower case; raises for one that names no format."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        raise InputError(
            f"{os.fspath(path)}: unknown extension {ending!r}, expected one of {', '.join(endings)}"
        )
    return ending


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether it is a pipe or a device, which is written into directly."""
    target = Path(os.path.realpath(path))
    return target.exists() and not target.is_file() and not target.is_dir()


def make_folder(folder: Path) -> None:
    """Makes the folder if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot create folder: {error.strerror}") from None
