"""Finished images reach the disk while the next ones are added."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

import lvdet
from lvdet.writers import journal
from writers.added_images import add_all, best, random_images, records_of

IMAGES = random_images(30, 5)


@pytest.mark.parametrize("file_bytes", [1 << 27, 3000])
def test_flushes_change_no_row(
    file_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    sync: Callable[[int], None] = os.fsync
    monkeypatch.setattr(journal, "FLUSH_BYTES", 600)
    monkeypatch.setattr(journal, "FILE_BYTES", file_bytes)

    def noted(file: int) -> None:
        flushed.append(file)
        sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=4) as sink:
        add_all(sink, IMAGES)
    assert records_of(tmp_path / "out.json") == best(IMAGES, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    assert len(flushed) > 4


def test_a_flush_that_fails_ends_the_writer_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And leaves what the next one resumes from."""
    monkeypatch.setattr(journal, "FLUSH_BYTES", 600)
    target = tmp_path / "out.json"
    sink = lvdet.TopKWriter(target, dets_per_class=4)
    failed: Future[None] = Future()
    failed.set_exception(OSError(5, "Input/output error"))
    add_all(sink, IMAGES[:3])
    monkeypatch.setattr(sink._journal, "_flush", failed)
    with pytest.raises(lvdet.LvdetError, match="Input/output error") as error:
        add_all(sink, IMAGES[3:])
    assert "\n" not in str(error.value)
    monkeypatch.undo()
    with lvdet.TopKWriter(target, dets_per_class=4) as again:
        add_all(again, IMAGES)
    assert records_of(target) == best(IMAGES, 4)


def test_a_system_that_writes_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call may write less than it was given, as beyond 2 GiB."""

    def some(file: FileIO, pieces: list[Any]) -> int:
        return file.write(b"".join(pieces)[:7])

    monkeypatch.setattr(journal, "write_pieces", some)
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=4) as sink:
        add_all(sink, IMAGES)
    assert records_of(tmp_path / "out.json") == best(IMAGES, 4)
