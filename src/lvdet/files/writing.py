"""Writing files whole or not at all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from lvdet.errors import InputError, OutputError


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write that appears under its name only once it is complete.

    A link stays, and what it leads to is written; what is not a file (a pipe, a device) cannot
    be replaced by one and is written into.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".lvdet-{os.getpid():x}-{time.monotonic_ns():x}.part")
    try:
        if is_special(target):
            with open(target, "wb") as file:
                yield file
            return
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except OSError as error:
        name = os.fspath(path)
        raise OutputError(f"{name}: cannot write: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Writes text, whole or not at all."""
    with write_whole(path) as file:
        file.write(text.encode(errors="replace"))


def write_json(content: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes JSON that people can read too, whole or not at all."""
    import json

    write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", path)


def require_ending(path: str | os.PathLike[str], endings: Sequence[str]) -> str:
    """The ending of a file, in lower case; refuses one that names no format."""
    ending = Path(path).suffix.lower()
    if ending not in endings:
        raise InputError(
            f"{os.fspath(path)}: unknown extension {ending!r}, expected one of {', '.join(endings)}"
        )
    return ending


def is_special(path: str | os.PathLike[str]) -> bool:
    """A pipe or a device, which is written into as it is."""
    target = Path(os.path.realpath(path))
    return target.exists() and not target.is_file() and not target.is_dir()


def make_folder(folder: Path) -> None:
    """The folder, where it is not there yet."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot create folder: {error.strerror}") from None
