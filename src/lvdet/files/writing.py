"""Writes files atomically: whole or not at all."""

from __future__ import annotations

import os
import re
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

_STREAM = re.compile(r"/dev/(stdin|stdout|stderr|fd/([0-9]{1,4}))")
#: Seconds for which a part that nobody has locked is left alone: it may be about to be.
_FRESH = 60


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that appears under its name only once it is complete.

    Links are followed: their target is written. Pipes, devices and open streams such as /dev/stdout
    are written into, because they cannot be replaced. A replaced file keeps its mode.
    """
    require_local(path)
    target = Path(os.path.realpath(path))
    checksum = f"{zlib.crc32(os.fsencode(target.name)):08x}"
    unique = f"{checksum}-{os.getpid():x}-{time.monotonic_ns():x}"
    temporary = target.with_name(f".lvdet-{unique}.part")
    made = False
    try:
        if is_special(path):
            number = stream_number(path)
            with open(path if number is None else os.dup(number), "wb") as file:
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
    """The extension of a file, in lower case; raises for one that names no format. Pipes and
    devices that have none get the first."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        if is_special(path):
            return endings[0]
        raise InputError(
            f"{os.fspath(path)}: unknown extension {ending!r}, expected one of {', '.join(endings)}"
        )
    return ending


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether it is a pipe, a device or an open stream, which is written into directly."""
    if stream_number(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode  # not of what a link names: that of a pipe has no path
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def stream_number(path: str | os.PathLike[str]) -> int | None:
    """The descriptor of an open stream that a path such as /dev/stdout names."""
    name = _STREAM.fullmatch(os.fspath(path))
    if name is None:
        return None
    return int(name[2]) if name[2] else ("stdin", "stdout", "stderr").index(name[1])


def make_folder(folder: Path) -> None:
    """Makes the folder if it does not exist."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot create folder: {error.strerror}") from None
