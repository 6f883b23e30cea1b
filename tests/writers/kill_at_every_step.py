"""Runs a sink again and again, each time killed one step later, and resumed.

    python kill_at_every_step.py FOLDER

A step is a file that is opened, renamed or removed, a folder made or removed, or half of a write.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import lvdet
from lvdet.writers import journal, top_k_writer
from writers.added_images import add_all, best, columns, journal_of, random_images, records_of
from writers.count_down import count_down

IMAGES, PER_CLASS = random_images(10, 0), 2
EXPECTED = best(IMAGES, PER_CLASS)


def killed_at(step: int, target: Path) -> tuple[list[int], bool]:
    """The images whose `add` had returned, and whether it was killed before it was done."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            count_down(step, target.parent)
            with lvdet.TopKWriter(target, dets_per_class=PER_CLASS) as sink:
                for image_id, records in IMAGES:
                    sink.add(image_id, *columns(records))
                    os.write(tell, image_id.to_bytes(8, "little", signed=True))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(tell)
    with open(told, "rb") as file:
        ids = memoryview(file.read()).cast("q").tolist()
    _, status = os.waitpid(child, 0)
    killed = os.WIFSIGNALED(status)
    assert killed or status == 0, status
    return ids, killed


def run(folder: Path) -> int:
    """How many steps there were."""
    for step in range(10_000):
        target = folder / f"{step}" / "out.jsonl"
        target.parent.mkdir()
        ids, killed = killed_at(step, target)
        complete = target.exists()
        if complete:
            assert records_of(target) == EXPECTED, step
        if not killed:
            assert complete
            assert [path.name for path in target.parent.iterdir()] == ["out.jsonl"]
            return step
        go_on(target, ids, complete)
        assert records_of(target) == EXPECTED, step
        assert not journal_of(target).exists(), step
        assert [path.name for path in target.parent.iterdir()] == ["out.jsonl"], step
    raise AssertionError("it does not end")


def go_on(target: Path, ids: list[int], complete: bool) -> None:
    """Finishes what was killed, with all that was finished."""
    try:
        sink = lvdet.TopKWriter(target, dets_per_class=PER_CLASS)
    except lvdet.InputError:  # the file was complete, if perhaps not in its place
        assert ids == [image_id for image_id, _ in IMAGES]
        return
    assert not complete
    finished = list(sink.images)
    assert finished[: len(ids)] == ids
    assert len(finished) <= len(ids) + 1
    add_all(sink, IMAGES)
    sink.close()


top_k_writer.COMPACT_ROWS, top_k_writer.GROWTH, journal.FILE_BYTES = 4, 1, 500
os.fsync = lambda _: None  # for crashes of the machine; slow
print(run(Path(sys.argv[1])))
