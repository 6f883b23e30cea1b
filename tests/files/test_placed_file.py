"""A temporary file that threads read and write at places."""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from lvdet import operating_system
from lvdet.operating_system import PlacedFile


@pytest.fixture(params=["posix", "windows"], autouse=True)
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Windows' way here: a second descriptor of a file with a name."""
    if request.param == "windows":
        monkeypatch.setattr(operating_system, "sys", SimpleNamespace(platform="win32"))
        monkeypatch.setattr(os, "O_TEMPORARY", 0, raising=False)
        monkeypatch.setattr(tempfile, "TemporaryFile", tempfile.NamedTemporaryFile)
        monkeypatch.delattr(os, "pread")
        monkeypatch.delattr(os, "pwrite")
    return str(request.param)


def test_places_are_independent_of_the_position() -> None:
    file = PlacedFile()
    file.truncate(10)
    file.write(6, b"after")
    file.write(2, b"ab")
    assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 0
    assert file.read(0, 8) == b"\0\0ab\0\0af"
    assert file.read(8, 100) == b"ter"
    assert file.read(50, 3) == b""
    assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 0
    file.close()
    file.close()


def test_threads_write_and_read_their_own_places(monkeypatch: pytest.MonkeyPatch) -> None:
    seek = os.lseek

    def seek_and_let_others_run(*arguments: int) -> int:
        position = seek(*arguments)
        time.sleep(0.001)
        return position

    monkeypatch.setattr(os, "lseek", seek_and_let_others_run)
    file = PlacedFile()

    def write_and_read(place: int) -> bool:
        content = bytes([place % 251]) * 1000
        file.write(1000 * place, content)
        return file.read(1000 * place, 1000) == content

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(write_and_read, range(50)))
    file.close()


def test_a_write_that_the_system_cuts_short_continues(
    system: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "write" if system == "windows" else "pwrite"
    whole = getattr(os, name)
    monkeypatch.setattr(os, name, lambda file, content, *at: whole(file, content[:3], *at))
    file = PlacedFile()
    file.write(1, b"in many pieces")
    assert file.read(1, 100) == b"in many pieces"
    file.close()
