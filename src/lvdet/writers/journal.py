"""The journal of a `TopKWriter`: finished images, on disk immediately.

A folder beside the target:

    rows-000000, …   blocks (see `blocks.py`): each has a finished image with its rows, or after
                     compaction many of them
    .settings.json   what the journal was started with
    .finished        the final file is complete, and lies here or in its place
    .lock            locked while a process writes

A block counts once it is there to its end. So whenever a process is killed, the last file ends
with whole blocks and perhaps a part of one more, which is cut off when the journal is opened
again. Files before the last are complete. They may lose rows that no longer count, each by being
replaced as a whole; nothing else depends on their size.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from lvdet.errors import InputError, OutputError
from lvdet.operating_system import content, write_pieces
from lvdet.writers.blocks import Block, read_blocks
from lvdet.writers.owned_folder import OwnedFolder

VERSION = 4
#: Bytes of rows in a file, about.
FILE_BYTES = 1 << 27
#: Bytes after which flushing to disk starts, while more are written.
FLUSH_BYTES = 1 << 24

_ROWS, _SETTINGS, _FINISHED, _LOCK = "rows-", ".settings.json", ".finished", ".lock"
_NEW = ".new-"


class Journal:
    """Rows and finished images. The folder is locked until `release` or `remove`."""

    _file: FileIO

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings: dict[str, Any] = {}
        #: Ids of finished images, in order.
        self.images: dict[int, None] = {}
        self.released = False
        self._open = ExitStack()
        self._number = 0
        self._end = 0
        self._flushed = 0
        self._flush: Future[None] | None = None
        with self._released_on_error():
            held = "another TopKWriter is writing here; give each its own file"
            self._folder = OwnedFolder(path, _LOCK, f"{path}: {held}")
            self._open.callback(self._folder.close)
            self._flusher = self._open.enter_context(ThreadPoolExecutor(1))
            for name in self._folder.names():
                if name.startswith((_NEW, ".lvdet-")):  # left by a killed write
                    self._folder.remove(name)

    @property
    def files(self) -> list[str]:
        """The files of rows, in order."""
        return [name for name in self._folder.names() if name.startswith(_ROWS)]

    @property
    def resumable(self) -> bool:
        """Whether an earlier process began it."""
        return self._folder.has(_SETTINGS)

    def begin(self, settings: dict[str, Any]) -> Iterator[Block]:
        """Begins the journal, or resumes one started with the same settings: yields its blocks,
        after which images can be appended."""
        with self._released_on_error():
            if self.resumable:
                self.settings = _same_settings(self.path, self._folder.content(_SETTINGS), settings)
            elif self.files:
                raise InputError(f"{self.path}: not a journal: it has rows but no {_SETTINGS}")
            else:
                self.settings = {"version": VERSION, **settings}
                self._write_settings()
            yield from self._recovered()

    def settle(self, name: str, value: Any) -> None:
        """Fixes a setting that was unknown at the start."""
        self.settings = self.settings | {name: value}
        with self._released_on_error():
            self._write_settings()

    def append(self, block: Block) -> None:
        """Writes images, which are then finished."""
        with self._released_on_error():
            pieces = block.pieces()
            _write(self._file, pieces)
            self._end += sum(map(len, pieces))
            self.images.update(dict.fromkeys(block.image_ids.tolist()))
            if self._end >= FILE_BYTES:
                self.roll()
            elif self._end - self._flushed >= FLUSH_BYTES:
                self._begin_flush()

    def roll(self) -> None:
        """Begins a new file of rows; the previous ones are complete."""
        if self._end == 0:
            return
        with self._released_on_error():
            if self._flush is not None:
                self._flush.result()
            os.fsync(self._file.fileno())
            self._file.close()
            self._flush = None
            self._flushed = 0
            self._number += 1
            self._end = 0
            self._file = self._open.enter_context(self._folder.begin(self._name()))

    def blocks(self, name: str) -> Iterator[Block]:
        """The blocks of a file."""
        with self._released_on_error():
            for block, _ in self._read(name, check=False):
                yield block

    def replace(self, name: str, blocks: Iterable[Block]) -> None:
        """Replaces a file with other rows of the same images."""
        with self._released_on_error(), self._written(name) as file:
            for block in blocks:
                _write(file, block.pieces())

    def place_for(self, final: str) -> Path:
        """The path to write the final file to. Nothing exists there, because a link would be
        followed."""
        with self._released_on_error():
            self._folder.remove(final)
        return self.path / final

    def finish(self, final: str, target: Path) -> None:
        """Moves the completed final file to its target and removes the journal."""
        with self._released_on_error():
            if self._flush is not None:
                self._flush.result()
            self._file.close()
            with self._written(_FINISHED) as file:
                _write(file, [final.encode()])
            self.recover_finished(final, target)
            self.remove()

    def recover_finished(self, final: str, target: Path) -> None:
        """Completes the move if a process was killed after finishing the final file."""
        with self._released_on_error():
            if not self._folder.has(_FINISHED):
                return
            named = self._folder.content(_FINISHED).decode(errors="replace")
            if named != final:
                raise InputError(
                    f"{self.path / _FINISHED}: names {_short(named)}, expected {final!r}; remove "
                    "the folder to start over"
                )
            if self._folder.has(final):
                self._folder.move_out(final, target)
            for name in (*self.files, _SETTINGS, _FINISHED):
                self._folder.remove(name)

    def remove(self) -> None:
        """Removes the folder, which then contains only the lock."""
        with self._released_on_error():
            self._folder.dissolve()
        self.release()

    def release(self) -> None:
        """Releases the journal for other processes."""
        self.released = True
        if self._flush is not None:
            self._flush.exception()  # it is over then, and its file may be closed
        self._open.close()

    def _begin_flush(self) -> None:
        """Starts flushing a complete file to disk; much of it is already there."""
        if self._flush is not None:
            if not self._flush.done():
                return
            self._flush.result()
        with suppress(RuntimeError):  # the system allows no more threads
            self._flush = self._flusher.submit(os.fsync, self._file.fileno())
            self._flushed = self._end

    def _name(self) -> str:
        return f"{_ROWS}{self._number:06}"

    def _write_settings(self) -> None:
        with self._written(_SETTINGS) as file:
            _write(file, [json.dumps(self.settings).encode() + b"\n"])

    @contextmanager
    def _written(self, name: str) -> Iterator[FileIO]:
        """A file of the folder that is replaced atomically."""
        self._folder.remove(_NEW + name)
        with self._folder.begin(_NEW + name) as file:
            yield file
            os.fsync(file.fileno())
        self._folder.rename(_NEW + name, name)

    def _read(self, name: str, *, check: bool) -> Iterator[tuple[Block, int]]:
        if self._folder.size(name) == 0:
            return
        with self._folder.read(name) as file:
            found = content(file)
        yield from read_blocks(found, check=check)

    def _recovered(self) -> Iterator[Block]:
        """The blocks of all files; the last file is truncated after its last complete block and
        opened."""
        files = self.files or [self._name()]
        self._number = int(files[-1].removeprefix(_ROWS))
        masked = set()
        for name in files:
            size = self._folder.size(name)
            end = 0
            foreign = False
            try:
                for block, after in self._read(name, check=True):
                    masked |= {block.masks is not None} if len(block) else set()
                    if len(masked) > 1:
                        raise ValueError("masks of some rows alone")
                    self.images.update(dict.fromkeys(block.image_ids.tolist()))
                    yield block
                    end = after
            except ValueError:
                foreign = True
            if foreign or (end < size and name != files[-1]):
                raise InputError(
                    f"{self.path / name}: damaged at byte {end:,}; remove the folder to start over"
                )
        self._file = self._open.enter_context(self._folder.extend(files[-1]))
        self._file.truncate(end)
        self._end = end

    @contextmanager
    def _released_on_error(self) -> Iterator[None]:
        """Releases the folder on errors; an interrupted operation is repaired when the journal is
        next opened."""
        try:
            yield
        except OSError as error:
            self.release()
            raise OutputError(f"{self.path}: cannot write: {error.strerror or error}") from None
        except BaseException:
            self.release()
            raise


def _same_settings(path: Path, content: bytes, wanted: dict[str, Any]) -> dict[str, Any]:
    """Checks that the journal was started with the given settings."""
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise InputError(
            f"{path}: not a journal of this version of lvdet; remove the folder to start over"
        )
    for name, value in wanted.items():
        if found.get(name) != value:
            raise InputError(
                f"{path}: started with {name} {_short(found.get(name))}, now {_short(value)}; "
                "use the same settings to resume, or remove the folder to start over"
            )
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"


def _write(file: FileIO, pieces: Sequence[Any]) -> None:
    """Writes all bytes: one call writes 2 GiB at most."""
    left = sum(map(len, pieces)) - write_pieces(file, pieces)
    if left:
        rest = memoryview(b"".join(pieces))[-left:]
        while rest:
            rest = rest[file.write(rest) :]
