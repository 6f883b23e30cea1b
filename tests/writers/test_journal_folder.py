"""What somebody has planted in the folder of a writer is refused, and nothing else is touched."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

import lvdet
from writers.added_images import add_all, best, journal_of, random_images, records_of

IMAGES = random_images(12, 5)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Of a journal with six images; beside it a file that is not the writer's."""
    target = tmp_path / "out.json"
    sink = lvdet.TopKWriter(target, dets_per_class=3)
    add_all(sink, IMAGES[:6])
    sink.__exit__(KeyError, None, None)
    (tmp_path / "victim").write_text("mine")
    return target


def opened(target: Path) -> lvdet.TopKWriter:
    return lvdet.TopKWriter(target, dets_per_class=3)


def finish(target: Path) -> None:
    with opened(target) as sink:
        add_all(sink, IMAGES)
    assert records_of(target) == best(IMAGES, 3)
    assert sorted(path.name for path in target.parent.iterdir()) == ["out.json", "victim"]
    assert (target.parent / "victim").read_text() == "mine"


@pytest.mark.parametrize("name", ["../victim", "rows-000000", ".final.parquet", "", "\0"])
def test_a_finished_file_of_another_name(name: str, target: Path) -> None:
    mark = journal_of(target) / ".finished"
    mark.write_text(name)
    for _ in range(2):
        with pytest.raises(lvdet.InputError, match=r"\.finished: names .*, expected '.final.json'"):
            opened(target)
    assert not target.exists()
    mark.unlink()
    finish(target)


@pytest.mark.parametrize("name", [".lock", ".settings.json", "rows-000000", ".finished"])
@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
def test_what_is_no_file_of_the_writer_s(name: str, kind: str, target: Path) -> None:
    victim, path = target.parent / "victim", journal_of(target) / name
    content = path.read_bytes() if path.exists() else None
    path.unlink(missing_ok=True)
    make: dict[str, Callable[[], None]] = {
        "link": lambda: path.symlink_to(victim),
        "hard link": lambda: path.hardlink_to(victim),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }
    make[kind]()
    for _ in range(2):
        with pytest.raises(lvdet.LvdetError, match=r"out\.json\.parts"):
            opened(target)
    assert victim.read_text() == "mine"
    if kind == "folder":
        path.rmdir()
    else:
        path.unlink()
    if content is not None:
        path.write_bytes(content)
    finish(target)


def test_a_final_file_that_is_a_link(target: Path) -> None:
    folder = journal_of(target)
    (folder / ".finished").write_text(".final.json")
    (folder / ".final.json").symlink_to(target.parent / "victim")
    with pytest.raises(lvdet.InputError, match=r"\.final\.json: not a file of lvdet's"):
        opened(target)
    assert not target.is_symlink()
    (folder / ".final.json").unlink()
    (folder / ".finished").unlink()
    finish(target)


@pytest.mark.parametrize("names", [[".new-.settings.json", ".new-.finished"], [".final.json"]])
def test_links_are_not_written_through(
    names: list[str], target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in names:
        (journal_of(target) / name).symlink_to(target.parent / "victim")
    finish(target)


def test_a_folder_that_is_a_link(target: Path, tmp_path: Path) -> None:
    folder = journal_of(target)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(lvdet.InputError, match="not a folder, or a link to one"):
        opened(target)
    folder.unlink()
    folder.write_text("")
    with pytest.raises(lvdet.InputError, match="not a folder, or a link to one"):
        opened(target)


def test_a_folder_of_another_user(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(lvdet.InputError, match=rf"belongs to another user \(uid {owner}\)"):
        opened(target)


def test_a_folder_is_the_user_s_alone(target: Path) -> None:
    assert journal_of(target).stat().st_mode & 0o777 == 0o700


def test_what_may_not_be_read(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of lvdet's, not Python's."""

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("stat", "lstat", "open", "listdir"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, denied)
            with pytest.raises(lvdet.OutputError, match="cannot write: Permission denied"):
                opened(target)
    finish(target)


def header(content: bytes) -> bytes:
    """The block with the checksum that it would have."""
    return content[:4] + zlib.crc32(content[8:]).to_bytes(4, "little") + content[8:]


@pytest.mark.parametrize("place", [48, 64, 72, 104, 112])
def test_a_block_of_nobody_is_refused(place: int, tmp_path: Path) -> None:
    """Its checksum is right, but it has a number of rows, a score, a box or a mask that no writer
    writes."""
    target = tmp_path / "out.json"
    sink = lvdet.TopKWriter(target, dets_per_class=3)
    mask = {"size": [4, 3], "counts": "174"}
    sink.add(1, [[1, 2, 3, 4]], [0.5], [1], [mask])
    sink.__exit__(KeyError, None, None)
    rows = journal_of(target) / "rows-000000"
    content = rows.read_bytes()
    rows.write_bytes(header(content[:place] + b"\xff" * 8 + content[place + 8 :]))
    with pytest.raises(lvdet.InputError, match="rows-000000: damaged at byte 0; remove the folder"):
        opened(target)
    rows.write_bytes(content)
    with opened(target) as again:
        assert list(again.images) == [1]


def test_masks_of_some_rows_alone_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    sink = lvdet.TopKWriter(target, dets_per_class=3)
    for image in (1, 2):
        sink.add(image, [[1, 2, 3, 4]], [0.5], [1], [{"size": [4, 3], "counts": "174"}])
    sink.__exit__(KeyError, None, None)
    rows = journal_of(target) / "rows-000000"
    content = rows.read_bytes()
    half = len(content) // 2
    flags = 4 + 4 + 3 * 8  # without the bit that says that there are masks
    first = header(content[:flags] + b"\x01" + content[flags + 1 : half])
    rows.write_bytes(first + content[half:])
    with pytest.raises(lvdet.InputError, match="damaged at byte"):
        opened(target)
