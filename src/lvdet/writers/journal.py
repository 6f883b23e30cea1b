"""The journal of a `TopKWriter`: what is finished, on disk as soon as it is.

A folder beside the target, that can itself be read as a folder of detections:

    rows-000000.jsonl, …  accepted rows, one per line, in the order in which they were added
    .images               24 bytes for each finished image: its id, the number of the file with
                          its rows, and where they end there
    .settings.json        what the journal was begun with
    .finished             the final file is complete, and lies here or in its place
    .lock                 locked while a process writes

Rows are written before the record of their image. So whenever a process is killed, the last
file ends with rows of finished images and perhaps a part of one more, which is cut off when the
journal is opened again. Files before the last are complete. They may lose rows that no longer
count, each by being replaced as a whole; nothing else depends on their size.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from lvdet.errors import InputError, OutputError
from lvdet.files.locking import lock_folder
from lvdet.files.writing import write_whole

VERSION = 3
#: Bytes of rows in a file, about; one file at a time is held in memory.
FILE_BYTES = 1 << 27

_IMAGES, _SETTINGS, _FINISHED, _LOCK = ".images", ".settings.json", ".finished", ".lock"
_RECORD = struct.Struct("<3q")
_RECORDS = np.dtype([("image", "<i8"), ("file", "<i8"), ("end", "<i8")])


class Journal:
    """Rows and finished images. The folder is locked until `release` or `remove`."""

    _rows: FileIO
    _images: FileIO

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {}
        #: Ids of finished images, in order.
        self.images: dict[int, None] = {}
        self.released = False
        self._open = ExitStack()
        self._number = 0
        self._end = 0
        with self._released_on_error():
            held = "another TopKWriter is writing here; give each its own file"
            self._open.enter_context(lock_folder(folder, _LOCK, f"{folder}: {held}"))
            for path in folder.glob(".lvdet-*.part"):  # of a write that was killed
                path.unlink()

    @property
    def files(self) -> list[Path]:
        """The files of rows, in order."""
        return sorted(self.folder.glob("rows-*.jsonl"))

    @property
    def begun(self) -> bool:
        """An earlier process has begun it."""
        return (self.folder / _SETTINGS).exists()

    def begin(self, settings: dict[str, Any]) -> None:
        """Begins the journal, or resumes one that was begun with the same settings."""
        with self._released_on_error():
            if self.begun:
                self.settings = _same_settings(self.folder, settings)
            elif self.files:
                raise InputError(f"{self.folder}: not a journal: it has rows but no {_SETTINGS}")
            else:
                self.settings = {"version": VERSION, **settings}
                self._write_settings()
            self._recover()

    def settle(self, name: str, value: Any) -> None:
        """Fixes a setting that was not known in the beginning."""
        self.settings = self.settings | {name: value}
        with self._released_on_error():
            self._write_settings()

    def append(self, image_id: int, rows: bytes) -> None:
        """Writes rows and marks their image as finished."""
        with self._released_on_error():
            _write(self._rows, rows)
            end = self._end + len(rows)
            _write(self._images, _RECORD.pack(image_id, self._number, end))
            self._end = end
            self.images[image_id] = None
            if end >= FILE_BYTES:
                self.roll()

    def roll(self) -> None:
        """Begins a new file of rows; those before it are complete."""
        with self._released_on_error():
            self.sync()
            self._rows.close()
            self._number += 1
            self._end = 0
            self._rows = self._opened(self._rows_path(), "xb")

    def sync(self) -> None:
        """Waits until all is on disk."""
        with self._released_on_error():
            for file in (self._rows, self._images):
                os.fsync(file.fileno())

    def finish(self, final: Path, target: Path) -> None:
        """Moves the complete final file to its place and removes the journal."""
        with self._released_on_error():
            with write_whole(self.folder / _FINISHED) as file:
                file.write(final.name.encode())
            self.recover_finished(target)
            self.remove()

    def recover_finished(self, target: Path) -> None:
        """Does the rest where a process was killed after the final file was complete."""
        with self._released_on_error():
            if not (self.folder / _FINISHED).exists():
                return
            final = self.folder / (self.folder / _FINISHED).read_text()
            if final.exists():
                os.replace(final, target)
            for path in (*self.files, self.folder / _IMAGES, self.folder / _SETTINGS):
                path.unlink(missing_ok=True)
            (self.folder / _FINISHED).unlink()

    def remove(self) -> None:
        """Removes the folder, of which nothing but the lock is left."""
        with self._released_on_error():
            (self.folder / _LOCK).unlink()
            with suppress(OSError):  # somebody's file is there, or the next writer's lock
                self.folder.rmdir()
        self.release()

    def release(self) -> None:
        """Lets another process have the journal."""
        self.released = True
        self._open.close()

    def _rows_path(self) -> Path:
        return self.folder / f"rows-{self._number:06}.jsonl"

    def _opened(self, path: Path, mode: str) -> FileIO:
        return self._open.enter_context(FileIO(path, mode))

    def _write_settings(self) -> None:
        with write_whole(self.folder / _SETTINGS) as file:
            file.write(json.dumps(self.settings).encode() + b"\n")

    def _recover(self) -> None:
        """Opens the files, cut off after the last finished image."""
        files = self.files
        if files:
            self._number = int(files[-1].stem.removeprefix("rows-"))
        self._rows = self._opened(self._rows_path(), "ab")
        self._images = self._opened(self.folder / _IMAGES, "ab")
        size = os.fstat(self._rows.fileno()).st_size
        content = (self.folder / _IMAGES).read_bytes()
        records = np.frombuffer(content, _RECORDS, len(content) // _RECORD.size)
        here = records["file"] == self._number
        lost = (here & (records["end"] > size)) | (records["file"] > self._number)
        if lost.any():  # the machine went down before the rows were on disk
            records, here = (column[: int(np.argmax(lost))] for column in (records, here))
        self._end = int(records["end"][here].max(initial=0))
        self._rows.truncate(self._end)
        self._images.truncate(records.nbytes)
        self.images = dict.fromkeys(records["image"].tolist())

    @contextmanager
    def _released_on_error(self) -> Iterator[None]:
        """Whatever is interrupted here is put right when the journal is opened again."""
        try:
            yield
        except OSError as error:
            self.release()
            raise OutputError(f"{self.folder}: cannot write: {error.strerror or error}") from None
        except BaseException:
            self.release()
            raise


def _same_settings(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """The settings a journal was begun with, if they are the wanted ones."""
    try:
        found = json.loads((folder / _SETTINGS).read_bytes())
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise InputError(
            f"{folder}: not a journal of this version of lvdet; remove the folder to start over"
        )
    for name, value in wanted.items():
        if found.get(name) != value:
            raise InputError(
                f"{folder}: started with {name} {_short(found.get(name))}, now {_short(value)}; "
                "use the same settings to resume, or remove the folder to start over"
            )
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"


def _write(file: FileIO, content: bytes) -> None:
    """Writes all of it: one call writes 2 GiB at most."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) :]
