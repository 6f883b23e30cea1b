"""Converting while reading: the file that is made of the whole table, in little memory."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from cli.run_lvdet import python_program
from files.record_files import (
    MASKED,
    MASKS_ALONE,
    ROWS,
    Json,
    assert_holds,
    assert_same,
    boxed_records,
    save,
    small,
    written,
)
from long_cases import first
from lvdet.files.convert import convert
from lvdet.files.detection_files import read_counted

ENDINGS = [".json", ".jsonl", ".parquet"]
SOURCES = ["json", "lines", "gzip", "parquet"]


@pytest.fixture
def streamed(pieces: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """No table of all rows is ever made."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the whole file was read")

    monkeypatch.setattr("lvdet.files.convert.read_counted", never)


def assert_as_whole(source: Path, target: Path, *, masks: bool = True) -> None:
    """The target is what is written of the table of all rows."""
    whole = lvdet.read_detections(source)
    if not masks:
        whole = lvdet.Detections.from_arrays(
            whole.image_ids[whole.image],
            whole.category_ids[whole.category],
            whole.score,
            whole.box,
        )
    expected = target.with_name(f"expected{target.suffix}")
    lvdet.write_detections(whole, expected)
    if target.suffix == ".parquet":
        read = lvdet.read_detections(target)
        assert_same(read, whole)
        assert read.boxes_given == whole.boxes_given
    else:
        assert target.read_bytes() == expected.read_bytes()


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("records", [ROWS, MASKED, MASKS_ALONE], ids=["boxes", "masks", "alone"])
@pytest.mark.parametrize("masks", [True, False])
def test_the_same_file(
    records: list[Json], kind: str, ending: str, masks: bool, tmp_path: Path
) -> None:
    source = written(records * 20, tmp_path, kind)
    target = tmp_path / f"out{ending}"
    assert convert(source, target, masks=masks) == (40, 40)
    assert_as_whole(source, target, masks=masks)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 3000), st.sampled_from(ENDINGS))
def test_masks_of_all_kinds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, stretch: int, ending: str
) -> None:
    rng = random.Random(seed)
    records = boxed_records(rng, rng.randint(0, 60))
    folder = tmp_path_factory.mktemp("any")
    source = save(folder / "in.json", records)
    with pytest.MonkeyPatch.context() as patch:
        small(patch, stretch)
        convert(source, folder / f"out{ending}")
        convert(folder / f"out{ending}", folder / "again.jsonl")
    assert_as_whole(source, folder / f"out{ending}")
    assert_as_whole(source, folder / "again.jsonl")


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("kind", ["json", "lines", "parquet"])
def test_into_its_own_input(kind: str, tmp_path: Path) -> None:
    path = written(MASKED * 20, tmp_path, kind)
    before = lvdet.read_detections(path)
    assert convert(path, path) == (40, 40)
    assert_same(lvdet.read_detections(path), before)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_a_bad_row_leaves_the_target(kind: str, tmp_path: Path) -> None:
    source = written(ROWS * 20, tmp_path, kind)
    bad = save(tmp_path / "z.json", [*ROWS * 20, ROWS[0] | {"score": "high"}])
    for ending in ENDINGS:
        target = save(tmp_path / f"out{ending}", "as it was")
        with pytest.raises(lvdet.InputError, match=r"z\.json, row 40, byte"):
            convert([source, bad], target)
        assert target.read_text() == "as it was"
        target.unlink()
    assert set(tmp_path.iterdir()) == {source, bad}


MIXED = {
    "masks that come late": ROWS * 20 + MASKED * 20,
    "boxes that come late": MASKS_ALONE * 20 + MASKED * 20,
}


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("records", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("ending", ENDINGS)
def test_columns_that_come_late(records: list[Json], ending: str, tmp_path: Path) -> None:
    """As Parquet they are read whole, since its columns have to be known at the beginning; as
    JSON, boxes that were made from masks need not be written."""
    source = save(tmp_path / "in.json", records)
    target = tmp_path / f"out{ending}"
    assert convert(source, target) == (80, 80)
    assert_same(lvdet.read_detections(target), lvdet.read_detections(source))
    assert_holds(lvdet.read_detections(target), records)


def test_columns_that_come_late_from_a_pipe(tmp_path: Path) -> None:
    """It cannot be read again."""
    records = json.dumps(MIXED["masks that come late"]).encode()
    code = """
import sys, lvdet
from lvdet.files import detections_json
from lvdet.files.convert import convert
detections_json.CHUNK = detections_json.STRETCH = 300
try:
    convert("-", sys.argv[1])
except lvdet.InputError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, tmp_path / "out.parquet"]
    done = subprocess.run(command, input=records, capture_output=True, check=True)
    assert done.stdout.startswith(b"-: rows with masks follow rows without")
    assert list(tmp_path.iterdir()) == []


def test_the_best_of_each_class_needs_all_rows(tmp_path: Path) -> None:
    source = written(MASKED * 20, tmp_path, "json")
    assert convert(source, tmp_path / "out.json", dets_per_class=3) == (6, 40)
    best, _ = read_counted(source, dets_per_class=3)
    assert_same(lvdet.read_detections(tmp_path / "out.json"), best)


#: Converts a file under a limit of memory, all at once and as a stream.
LIMITED = """
import resource, sys
import numpy, pyarrow.parquet, lvdet
from lvdet.files import convert
used = 1024 * int(open("/proc/self/status").read().split("VmSize:")[1].split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[3]) * 2**20,) * 2)
lvdet.set_threads(1 if sys.argv[4] == "whole" else 2)
try:
    if sys.argv[4] == "whole":
        lvdet.write_detections(lvdet.read_detections(sys.argv[1]), sys.argv[2])
    else:
        print(*convert.convert(sys.argv[1], sys.argv[2]))
except MemoryError:
    print("MemoryError")
"""


PAIRS = [
    ("in.json", "out.jsonl"),
    ("in.parquet", "out.json"),
    ("in.json.gz", "out.json"),
    ("in.jsonl", "out.parquet"),
    ("in.parquet", "out.parquet"),
]
#: One arena, so that address space is not taken for each thread before it is needed.
FRUGAL = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "LVDET_THREADS": "2"}


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
@pytest.mark.parametrize("pairs", first(1, [PAIRS[:2], PAIRS[2:]]), ids=len)
@pytest.mark.parametrize("masks", first(1, [False, True]))
def test_files_larger_than_the_memory_allowed(
    masks: bool, pairs: list[tuple[str, str]], tmp_path: Path
) -> None:
    """In `room` MiB more than the program itself takes, where a table of all rows has no room:
    2.4 million rows of 48 bytes, or 0.6 million with masks of 215 bytes."""
    images, count, room = (1000, 600, 170) if masks else (800, 3000, 130)
    _, dt = lvdet.simulate(images=images, classes=300, dets_per_image=count, masks=masks, seed=5)
    sources = sorted({source for source, _ in pairs})
    for source in sources:
        lvdet.write_detections(dt, tmp_path / source.removesuffix(".gz"))
        if source.endswith(".gz"):
            packed = gzip.compress((tmp_path / "in.json").read_bytes(), compresslevel=1)
            (tmp_path / source).write_bytes(packed)

    def run(source: str, target: str, mode: str) -> str:
        paths = [tmp_path / source, tmp_path / target]
        done = python_program(LIMITED, *paths, str(room), mode, **FRUGAL)
        return (done.out + done.err).strip()

    for source in sources:
        assert run(source, "out.json", "whole").startswith("MemoryError"), source
    for source, target in pairs:
        assert run(source, target, "streamed") == f"{len(dt)} {len(dt)}", (source, target)
        (tmp_path / target).unlink()
