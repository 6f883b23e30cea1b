"""A temporary file that threads read and write at places."""

from __future__ import annotations

import os

import pytest

from lvdet.operating_system import PlacedFile


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


def test_a_write_that_the_system_cuts_short_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, content, at: whole(file, content[:3], at))
    file = PlacedFile()
    file.write(1, b"in many pieces")
    assert file.read(1, 100) == b"in many pieces"
    file.close()
