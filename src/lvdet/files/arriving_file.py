"""A remote file as a file object."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lvdet.files.arriving import Arriving


class ArrivingFile(io.RawIOBase):
    """A file object whose reads wait for what they read."""

    def __init__(self, arriving: Arriving) -> None:
        super().__init__()
        self.arriving = arriving
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.arriving.fileno()

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence)
        self._at = (self.arriving.stored.size if start is None else start) + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        count = self.arriving.stored.size - self._at if size is None or size < 0 else size
        content = self.arriving.read(self._at, count)
        self._at += len(content)
        return content

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: object) -> int:
        into = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        content = self.read(len(into))
        into[: len(content)] = content
        return len(content)
