"""The sink without the compiled core keeps, and writes, what the compiled one does."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco

import lvdet
from lvdet.errors import InputError
from lvdet.writers import journal, plain_writer, top_k_base
from lvdet.writers.plain_writer import PlainTopKWriter
from writers.added_images import best, columns, journal_of, random_images

BOTH: tuple[Callable[..., Any], ...] = (lvdet.TopKWriter, PlainTopKWriter)


@contextmanager
def small_journal(compact_rows: int, file_bytes: int) -> Iterator[None]:
    """Compacts and begins new files after so few rows and bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_k_base, "COMPACT_ROWS", compact_rows)
        patch.setattr(top_k_base, "GROWTH", 1.2)
        patch.setattr(plain_writer, "BLOCK", 5)
        patch.setattr(journal, "FILE_BYTES", file_bytes)
        yield


def records(path: Path) -> list[dict[str, Any]]:
    """What a JSON file holds."""
    text = path.read_text()
    return (
        list(json.loads(text))
        if path.suffix == ".json"
        else [json.loads(line) for line in text.splitlines()]
    )


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 20),
    st.sampled_from([0, 3, 1000]),
    st.sampled_from([1, 300, 1 << 20]),
    st.sampled_from([".json", ".jsonl"]),
    st.lists(st.integers(0, 15), max_size=3),
)
def test_the_best_of_each_class(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    per_class: int,
    compact_rows: int,
    file_bytes: int,
    ending: str,
    restarts: list[int],
) -> None:
    """With ties, compaction, several files, and restarts in which either kind goes on."""
    images = random_images(12, seed, classes=3, scores=5, most=9)
    target = tmp_path_factory.mktemp("sink") / f"out{ending}"
    with small_journal(compact_rows, file_bytes):
        sink = PlainTopKWriter(target, per_class=per_class)
        for number, (image_id, rows) in enumerate(images):
            if number in restarts:
                before = dict(sink.thresholds), sink.rows, list(sink.images)
                sink.__exit__(KeyError, None, None)
                sink = BOTH[number % 2](target, per_class=per_class)
                assert (dict(sink.thresholds), sink.rows, list(sink.images)) == before
            boxes, scores, labels = columns(rows)
            kept = sink.keeps(scores, labels)
            assert kept.tolist() == [
                score > sink.threshold(label) for score, label in zip(scores, labels, strict=True)
            ]
            assert image_id not in sink
            sink.add(image_id, boxes, scores, labels)
            assert image_id in sink
        assert len(sink) == len(images)
        assert sink
        sink.close()
    assert records(target) == best(images, per_class)
    assert not journal_of(target).exists()


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".ndjson"])
def test_both_write_the_same(ending: str, tmp_path: Path) -> None:
    """Corners, labels as places, masks, numbers of all sizes."""
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"compiled{ending}", tmp_path / f"plain{ending}"]
    images = []
    for image_id in range(20):
        count = int(rng.integers(0, 9))
        corner = rng.random((count, 2)) * 10.0 ** rng.integers(-8, 8, (count, 1))
        box = np.concatenate([corner, corner + rng.random((count, 2))], axis=1)
        score = (rng.integers(1, 6, count) / 7).astype(np.float32)
        bitmaps = np.asfortranarray(rng.random((70, 90, count)) < rng.random())
        masks = coco.encode(bitmaps.astype(np.uint8))
        images.append((image_id, box, score, rng.integers(0, 3, count), masks))
    for kind, path in zip(BOTH, paths, strict=True):
        with kind(path, per_class=6, box_format="xyxy", category_ids=[9, 4, 11]) as sink:
            for image in images:
                sink.add(*image)
    compiled, plain = map(records, paths)
    assert compiled == plain
    assert len(plain) == 18
    assert any("\\" in row["segmentation"]["counts"] for row in plain)
    assert {row["category_id"] for row in plain} == {4, 9, 11}


def test_masks_that_are_not_kept_are_not_looked_at(tmp_path: Path) -> None:
    with PlainTopKWriter(tmp_path / "out.json", per_class=1) as sink:
        mask = {"size": [2, 2], "counts": b"04"}
        sink.add(1, None, [0.5], [3], [mask])
        sink.add(2, None, [0.4, 0.5], [3, 3], [None, None])
        with pytest.raises(InputError, match="image 3, row 1: has no mask, but may be kept"):
            sink.add(3, None, [0.1, 0.6], [3, 3], [None, None])
    assert records(tmp_path / "out.json") == [
        {
            "image_id": 1,
            "category_id": 3,
            "score": 0.5,
            "segmentation": {"size": [2, 2], "counts": "04"},
        }
    ]


def test_no_more_rows_of_an_image_than_can_count(tmp_path: Path) -> None:
    with PlainTopKWriter(tmp_path / "out.json", per_class=3) as sink:
        sink.add(1, np.ones((50, 4)), np.arange(50) // 2 / 50, [7] * 49 + [8])
        assert sink.rows == 4
    assert [row["score"] for row in records(tmp_path / "out.json")] == [0.46, 0.46, 0.48, 0.48]


def test_without_detections(tmp_path: Path) -> None:
    for ending, text in ((".json", "[]\n"), (".jsonl", "")):
        with PlainTopKWriter(tmp_path / f"out{ending}", per_class=1) as sink:
            sink.add(1, [], [], [])
        assert (tmp_path / f"out{ending}").read_text() == text
    assert lvdet.read_detections(tmp_path / "out.json").image.size == 0


def test_what_cannot_be_used(tmp_path: Path) -> None:
    """Both refuse it, in one line, and the image is not finished."""
    good = [[1.0, 2, 3, 4]], [0.5], [1]
    wrong: list[tuple[Any, ...]] = [
        ("7", *good),
        (7, [[1, 2, 3]], [0.5], [1]),
        (7, [[1, 2, -3, 4]], [0.5], [1]),
        (7, [[1, 2, math.nan, 4]], [0.5], [1]),
        (7, good[0], [math.nan], [1]),
        (7, good[0], [0.5, 0.6], [1]),
        (7, good[0], [0.5], [1.5]),
        (7, good[0], [0.5], [5]),
        (7, good[0], [0.5], [-1]),
        (7, *good, [{"size": [1, 1], "counts": "01"}]),
        (7, good[0], ["a"], [1]),
        (1, *good),
    ]
    for kind in BOTH:
        target = tmp_path / f"{kind.__name__}.json"
        with kind(target, per_class=3, category_ids=[10, 20, 30]) as sink:
            sink.add(1, *good)
            for case in wrong:
                with pytest.raises(InputError) as error:
                    sink.add(*case)
                assert "\n" not in str(error.value)
            assert list(sink.images) == [1]
        with pytest.raises(InputError, match="is there already"):
            kind(target, per_class=3)
        with pytest.raises(InputError, match="the sink is closed"):
            sink.add(2, *good)
    with pytest.raises(InputError, match="compiled core is missing"):
        PlainTopKWriter(tmp_path / "out.parquet", per_class=1)
    for option in ({"per_class": 0}, {"per_class": 2.5}, {"per_class": 1, "box_format": "cxcywh"}):
        with pytest.raises(InputError):
            PlainTopKWriter(tmp_path / "new.json", **option)  # type: ignore[arg-type]


def test_other_settings_and_other_writers(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    sink = PlainTopKWriter(target, per_class=3)
    with pytest.raises(InputError, match="another TopKWriter is writing here"):
        lvdet.TopKWriter(target, per_class=3)
    sink.__exit__(KeyError, None, None)
    with pytest.raises(InputError, match="was begun with per_class 3, which is now 4"):
        PlainTopKWriter(target, per_class=4)


def test_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    with PlainTopKWriter(tmp_path / "out.json", per_class=5) as sink:
        sink.add(
            torch.tensor(4),
            torch.tensor([[1.0, 2, 3, 4]]),
            torch.tensor([0.5], dtype=torch.bfloat16),
            torch.tensor([3]),
        )
    assert records(tmp_path / "out.json") == [
        {"image_id": 4, "category_id": 3, "bbox": [1, 2, 3, 4], "score": 0.5}
    ]


def test_threads_share_a_sink(tmp_path: Path) -> None:
    """Whole images, each once, in whatever order."""
    images = random_images(120, 5, most=12)
    with (
        PlainTopKWriter(tmp_path / "out.json", per_class=40) as sink,
        ThreadPoolExecutor(4) as pool,
    ):

        def add(part: list[Any]) -> None:
            for image_id, rows in part:
                sink.add(image_id, *columns(rows))

        list(pool.map(add, [images[place::4] for place in range(4)]))
        order = {image_id: place for place, image_id in enumerate(sink.images)}
    added = sorted(images, key=lambda image: order[image[0]])
    assert records(tmp_path / "out.json") == best(added, 40)


def test_without_the_compiled_core() -> None:
    """It can be imported where there is none."""
    program = "import sys; sys.modules['lvdet._native'] = None; import lvdet.writers.plain_writer"
    subprocess.run([sys.executable, "-c", program], check=True)
