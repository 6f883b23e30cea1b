"""A sink that was stopped resumes, or says why it cannot."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import lvdet
from long_cases import first
from lvdet.writers import journal
from writers.added_images import add_all, best, columns, journal_of, random_images, records_of
from writers.test_top_k_writer import small_journal

IMAGES = random_images(12, 5)
BOX = [[0.0, 0.0, 1.0, 1.0]]


class LoopError(Exception):
    """Anything that ends a loop before its time."""


def begun(target: Path, count: int = 6, **options: Any) -> None:
    """Leaves a journal with the first images."""
    with suppress(LoopError), lvdet.TopKWriter(target, dets_per_class=3, **options) as sink:
        add_all(sink, IMAGES[:count])
        raise LoopError


def finish(target: Path, **options: Any) -> None:
    with lvdet.TopKWriter(target, dets_per_class=3, **options) as sink:
        add_all(sink, IMAGES)
    assert records_of(target) == best(IMAGES, 3)
    assert not journal_of(target).exists()


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_an_error_in_the_loop(ending: str, tmp_path: Path) -> None:
    target = tmp_path / f"out{ending}"
    begun(target)
    assert not target.exists()
    with suppress(LoopError), lvdet.TopKWriter(target, dets_per_class=3) as sink:
        assert list(sink.images) == [image_id for image_id, _ in IMAGES[:6]]
        with pytest.raises(lvdet.InputError, match="already added"):
            sink.add(IMAGES[0][0], [], [], [])
        raise LoopError
    finish(target)


@pytest.mark.parametrize("file_bytes", first(1, [1000, 1 << 20]))
def test_torn_tails(file_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut at any byte since the last file was begun, as a crash of the machine may leave it, with
    a part of something more, or with zeros in it."""
    monkeypatch.setattr(journal, "FILE_BYTES", file_bytes)
    begun(tmp_path / "out.json", 7)
    whole = tmp_path / "whole"
    journal_of(tmp_path / "out.json").rename(whole)
    rows = sorted(whole.glob("rows-*"))
    assert (len(rows) > 1) == (file_bytes == 1000)
    file = rows[-1]
    content = file.read_bytes()
    assert len(content) > 300
    contents = [content[:end] for end in range(max(0, len(content) - 400), len(content) + 1)]
    contents += [content + tail for tail in (b"LV", b"LVDB", bytes(100), content[:60])]
    contents += [content[:60] + bytes(len(content) - 60), bytes(len(content))]
    kept = set()
    for number, text in enumerate(contents):
        target = tmp_path / f"{number}.jsonl"
        shutil.copytree(whole, journal_of(target))
        (journal_of(target) / file.name).write_bytes(text)
        with lvdet.TopKWriter(target, dets_per_class=3) as sink:
            kept.add(len(sink))
            assert list(sink.images) == [image_id for image_id, _ in IMAGES[: len(sink)]]
            if text.startswith(content):
                assert len(sink) == 7
            add_all(sink, IMAGES)
        assert records_of(target) == best(IMAGES, 3), number
    assert len(kept) > 1


@pytest.mark.parametrize(
    "options",
    [
        {"dets_per_class": 4},
        {"dets_per_class": 3, "box_format": "xyxy"},
        {"dets_per_class": 3, "category_ids": list(range(100))},
    ],
)
def test_other_settings(options: dict[str, Any], tmp_path: Path) -> None:
    begun(tmp_path / "out.json")
    with pytest.raises(lvdet.InputError, match=r"out.json.parts: started with .*, now"):
        lvdet.TopKWriter(tmp_path / "out.json", **options)
    finish(tmp_path / "out.json")


def test_category_ids_left_out(tmp_path: Path) -> None:
    begun(tmp_path / "out.json", category_ids=list(range(100)))
    with pytest.raises(lvdet.InputError, match=r"started with category_ids \[0, 1, .*…, now"):
        lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=3)
    finish(tmp_path / "out.json", category_ids=list(range(100)))


def test_masks_after_a_restart(tmp_path: Path) -> None:
    begun(tmp_path / "out.json")
    with (
        lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=3) as sink,
        pytest.raises(lvdet.InputError, match="image 1000: has masks, earlier images have no"),
    ):
        sink.add(1000, BOX, [0.5], [1], [{"size": [4, 3], "counts": "174"}])


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1, "per_class": 3}'])
def test_settings_that_are_not_ours(text: str, tmp_path: Path) -> None:
    begun(tmp_path / "out.json")
    (journal_of(tmp_path / "out.json") / ".settings.json").write_text(text)
    with pytest.raises(lvdet.InputError, match="not a journal of this version"):
        lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=3)


def test_a_folder_that_is_no_journal(tmp_path: Path) -> None:
    folder = journal_of(tmp_path / "out.json")
    folder.mkdir()
    (folder / "rows-000000").write_text("mine")
    with pytest.raises(lvdet.InputError, match="not a journal"):
        lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=3)
    assert (folder / "rows-000000").read_text() == "mine"


def test_rows_that_are_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file before the last, which was complete."""
    monkeypatch.setattr(journal, "FILE_BYTES", 500)
    begun(tmp_path / "out.json")
    rows = journal_of(tmp_path / "out.json") / "rows-000000"
    content = rows.read_bytes()
    for damaged in (content[:-1], content[:45] + b"x" + content[46:], bytes(len(content))):
        rows.write_bytes(damaged)
        for _ in range(2):  # and nothing stays locked
            with pytest.raises(lvdet.InputError, match=r"rows-000000: damaged at byte \d+; remove"):
                lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=3)
    rows.write_bytes(content)
    finish(tmp_path / "out.json")


def test_two_at_once(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    with lvdet.TopKWriter(target, dets_per_class=3) as sink:
        add_all(sink, IMAGES[:3])
        for _ in range(2):
            with pytest.raises(lvdet.InputError, match="another TopKWriter is writing here"):
                lvdet.TopKWriter(target, dets_per_class=3)
        add_all(sink, IMAGES)
    assert records_of(target) == best(IMAGES, 3)


def test_another_process_has_no_part_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was forked with the sink in its memory."""
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=3) as sink:
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            with pytest.raises(lvdet.InputError, match="belongs to another process"):
                sink.add(1, BOX, [0.5], [1])
        sink.add(1, BOX, [0.5], [1])


def test_a_finished_file_is_not_begun_anew(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    finish(target)
    with pytest.raises(lvdet.InputError, match="already exists; pass overwrite=True"):
        lvdet.TopKWriter(target, dets_per_class=3)
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
    with lvdet.TopKWriter(target, dets_per_class=1, overwrite=True) as sink:
        add_all(sink, IMAGES[:6])
        assert records_of(target) == best(IMAGES, 3)
    assert records_of(target) == best(IMAGES[:6], 1)


def test_overwriting_goes_on_too(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("[]")
    begun(target, overwrite=True)
    with pytest.raises(lvdet.InputError, match="already exists"):
        lvdet.TopKWriter(target, dets_per_class=3)
    with lvdet.TopKWriter(target, dets_per_class=3, overwrite=True) as sink:
        assert len(sink) == 6
        add_all(sink, IMAGES)
    assert records_of(target) == best(IMAGES, 3)


def stop(*_: object) -> None:
    raise LoopError


@pytest.mark.parametrize("overwrite", [False, True])
def test_killed_before_the_journal_was_removed(
    overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.json"
    with monkeypatch.context() as patch:
        patch.setattr(journal.Journal, "remove", stop)
        with pytest.raises(LoopError), lvdet.TopKWriter(target, dets_per_class=3) as sink:
            add_all(sink, IMAGES)
    assert journal_of(target).exists()
    if overwrite:
        finish(target, overwrite=True)
    else:
        with pytest.raises(lvdet.InputError, match="already exists"):
            lvdet.TopKWriter(target, dets_per_class=3)
    assert records_of(target) == best(IMAGES, 3)
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fail_in_append(patch: pytest.MonkeyPatch) -> None:
    write = journal._write

    def half(file: Any, pieces: list[Any]) -> None:
        write(file, pieces[: len(pieces) // 2])
        no_space()

    patch.setattr(journal, "_write", half)


def add_and_close(sink: lvdet.TopKWriter) -> None:
    add_all(sink, IMAGES)
    sink.close()


@pytest.mark.parametrize(
    "fail",
    [
        fail_in_append,
        lambda patch: patch.setattr(os, "fsync", no_space),
        lambda patch: patch.setattr(os, "replace", no_space),
    ],
    ids=["append", "fsync", "replace"],
)
def test_a_full_disk(
    fail: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One clear error, and with more room it continues. A loop that passes over the error does not
    end as if all were well."""
    target = tmp_path / "out.json"
    begun(target)
    with small_journal(5, 300):
        sink = lvdet.TopKWriter(target, dets_per_class=3)
        with monkeypatch.context() as patch:
            fail(patch)
            with pytest.raises(lvdet.OutputError, match="cannot write: No space left"):
                add_and_close(sink)
    with pytest.raises(lvdet.InputError, match="the writer is closed"):
        sink.add(1000, BOX, [0.5], [1])
    with pytest.raises(lvdet.OutputError, match="not written because of an error"):
        sink.close()
    assert not target.exists()
    finish(target)


def test_an_interrupt_in_add(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in memory may be half changed then; what is on disk is right."""
    target = tmp_path / "out.json"
    sink = lvdet.TopKWriter(target, dets_per_class=3)
    add_all(sink, IMAGES[:4])
    monkeypatch.setattr(sink, "_take_in", stop)
    with pytest.raises(LoopError):
        sink.add(IMAGES[4][0], *columns(IMAGES[4][1]))
    with pytest.raises(lvdet.InputError, match="the writer is closed"):
        sink.add(IMAGES[5][0], *columns(IMAGES[5][1]))
    assert not target.exists()
    finish(target)


@pytest.mark.parametrize("dets_per_class", [3, 10_000])
def test_threads_share_a_sink(dets_per_class: int, tmp_path: Path) -> None:
    """Whole images, each once, in whatever order; and a journal that can be opened again."""
    images = random_images(400, 5, most=20)
    parts = [images[place::4] for place in range(4)]
    sink = lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=dets_per_class)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda part: add_all(sink, part), parts))
    order = {image_id: place for place, image_id in enumerate(sink.images)}
    assert set(order) == {image_id for image_id, _ in images}
    sink._journal.release()  # as where the process was killed
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=dets_per_class) as again:
        assert list(again.images) == list(order)
    added = sorted(images, key=lambda image: order[image[0]])
    assert records_of(tmp_path / "out.json") == best(added, dets_per_class)
