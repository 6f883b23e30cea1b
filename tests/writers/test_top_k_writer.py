"""What a sink keeps is what plain sorting keeps, whatever is added."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from files.record_files import assert_holds
from files.windows_rules import keep_open_files
from lvdet.writers import journal, top_k_writer
from lvdet.writers.blocks import read_blocks
from writers.added_images import (
    Image,
    add_all,
    best,
    columns,
    journal_of,
    random_images,
    records_of,
)

ENDINGS = [".json", ".jsonl", ".ndjson", ".parquet"]


@contextmanager
def small_journal(compact_rows: int, file_bytes: int) -> Iterator[None]:
    """Compacts and begins new files after so few rows and bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(top_k_writer, "COMPACT_ROWS", compact_rows)
        patch.setattr(top_k_writer, "GROWTH", 1.2)
        patch.setattr(journal, "FILE_BYTES", file_bytes)
        yield


@st.composite
def image_lists(draw: st.DrawFn) -> list[Image]:
    record = st.fixed_dictionaries(
        {
            "category_id": st.integers(0, 3),
            "bbox": st.lists(st.integers(0, 50).map(float), min_size=4, max_size=4),
            "score": st.one_of(
                st.integers(0, 4).map(lambda n: n / 4), st.floats(-1e300, 1e300, width=64)
            ),
        }
    )
    ids = draw(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12, unique=True))
    return [
        (image_id, [row | {"image_id": image_id} for row in draw(st.lists(record, max_size=12))])
        for image_id in ids
    ]


@settings(max_examples=150)
@given(
    image_lists(),
    st.integers(1, 20),
    st.sampled_from([0, 3, 1000]),
    st.sampled_from([1, 300, 1 << 20]),
    st.lists(st.integers(0, 12), max_size=3),
)
def test_the_best_of_each_class(
    tmp_path_factory: pytest.TempPathFactory,
    images: list[Image],
    dets_per_class: int,
    compact_rows: int,
    file_bytes: int,
    restarts: list[int],
) -> None:
    """With ties, compaction, several files and restarts; thresholds rise and are exact."""
    target = tmp_path_factory.mktemp("sink") / "out.jsonl"
    expected = best(images, dets_per_class)
    before: dict[int, float] = {}
    with small_journal(compact_rows, file_bytes):
        sink = lvdet.TopKWriter(target, dets_per_class=dets_per_class)
        for number, (image_id, records) in enumerate(images):
            if number in restarts:
                before, rows = dict(sink.thresholds), sink.rows
                sink.__exit__(KeyError, None, None)
                sink = lvdet.TopKWriter(target, dets_per_class=dets_per_class)
                assert (sink.thresholds, sink.rows) == (before, rows)
            boxes, scores, labels = columns(records)
            keeps = sink.keeps(scores, labels)
            assert all(
                kept or row not in expected for kept, row in zip(keeps, records, strict=True)
            )
            for row, kept in zip(records, keeps.tolist(), strict=True):
                assert kept == (row["score"] > sink.threshold(row["category_id"]))
            sink.add(image_id, boxes, scores, labels)
            assert image_id in sink
            for category_id, threshold in before.items():
                assert sink.thresholds[category_id] >= threshold
            before = dict(sink.thresholds)
            assert before == exact_thresholds(images[: number + 1], dets_per_class)
            assert sink.rows <= max(
                compact_rows, 1.2 * len(best(images[: number + 1], dets_per_class))
            )
        assert list(sink.images) == [image_id for image_id, _ in images]
        sink.close()
    assert records_of(target) == expected
    assert [path.name for path in target.parent.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("file_bytes", [1, 300])
def test_where_open_files_stay(
    file_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows: through compaction and a restart, no file is removed or replaced while it is
    open or mapped, and none is opened relative to a folder."""
    target, images = tmp_path / "out.jsonl", random_images(30, 3)
    with monkeypatch.context() as patch, small_journal(3, file_bytes):
        keep_open_files(patch)
        sink = lvdet.TopKWriter(target, dets_per_class=5)
        add_all(sink, images[:20])
        sink.__exit__(KeyError, None, None)
        with lvdet.TopKWriter(target, dets_per_class=5) as sink:
            add_all(sink, images)
    assert records_of(target) == best(images, 5)
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


def exact_thresholds(images: list[Image], dets_per_class: int) -> dict[int, float]:
    kept: dict[int, list[float]] = {}
    for row in best(images, dets_per_class):
        kept.setdefault(row["category_id"], []).append(row["score"])
    return {name: min(scores) for name, scores in kept.items() if len(scores) == dets_per_class}


@pytest.mark.parametrize("dets_per_class", [1, 7, 100, 3000])
def test_many_rows_of_one_class(dets_per_class: int, tmp_path: Path) -> None:
    """Enough of them that scores are taken in one at a time, in heaps, and all at once."""
    rng = np.random.default_rng(dets_per_class)
    images: list[Image] = []
    for image_id, count in enumerate([1, 5, 900, 3, 1, 40, 2000, 5, 700, *[3] * 200]):
        scores = np.round(rng.beta(1 + image_id / 60, 2, count), 3).tolist()
        images.append(
            (
                image_id,
                [
                    {"image_id": image_id, "category_id": 1, "bbox": [0, 0, 1, 1], "score": score}
                    for score in scores
                ],
            )
        )
    with lvdet.TopKWriter(tmp_path / "out.jsonl", dets_per_class=dets_per_class) as sink:
        for number, (image_id, records) in enumerate(images):
            sink.add(image_id, *columns(records))
            if number % 10 == 0:
                assert sink.thresholds == exact_thresholds(images[: number + 1], dets_per_class)
    assert records_of(tmp_path / "out.jsonl") == best(images, dets_per_class)


def test_after_compaction_only_the_best_are_left(tmp_path: Path) -> None:
    images = random_images(60, 1)
    with small_journal(5, 200), lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=3) as sink:
        smallest = math.inf
        for number, (image_id, records) in enumerate(images):
            before = sink.rows
            sink.add(image_id, *columns(records))
            if sink.rows < before:
                assert sink.rows == len(best(images[: number + 1], 3))
                held = sorted(journal_of(tmp_path / "out.json").glob("rows-*"))
                blocks = [read_blocks(path.read_bytes(), check=True) for path in held]
                assert sum(len(block) for each in blocks for block, _ in each) == sink.rows
                smallest = min(smallest, sink.rows)
        assert smallest < math.inf
    assert records_of(tmp_path / "out.json") == best(images, 3)


@pytest.mark.parametrize("ending", ENDINGS)
def test_formats(ending: str, tmp_path: Path) -> None:
    images = random_images(30, 2)
    with lvdet.TopKWriter(tmp_path / f"out{ending}", dets_per_class=5) as sink:
        add_all(sink, images)
        assert not (tmp_path / f"out{ending}").exists()
    assert_holds(lvdet.read_detections(tmp_path / f"out{ending}"), best(images, 5))


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("images", [[], [(5, []), (6, [])]])
def test_no_detections(ending: str, images: list[Image], tmp_path: Path) -> None:
    with lvdet.TopKWriter(tmp_path / f"out{ending}", dets_per_class=5) as sink:
        add_all(sink, images)
        assert len(sink) == len(images)
        assert sink
    assert len(lvdet.read_detections(tmp_path / f"out{ending}")) == 0


class Tensor:
    """What the sink may know of a tensor: it lies elsewhere, has gradients and an odd type."""

    def __init__(self, values: Any, state: str = "gradients", odd: bool = False) -> None:
        self.values, self.state, self.odd = np.asarray(values), state, odd

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, rows: list[int]) -> Tensor:
        return Tensor(self.values[rows], self.state, self.odd)

    def detach(self) -> Tensor:
        assert self.state == "gradients"
        return Tensor(self.values, "elsewhere", self.odd)

    def cpu(self) -> Tensor:
        assert self.state == "elsewhere"
        return Tensor(self.values, "here", self.odd)

    def float(self) -> Tensor:
        return Tensor(self.values, self.state)

    def numpy(self) -> Any:
        assert self.state == "here"
        if self.odd:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self.values


@pytest.mark.parametrize("odd", [False, True])
def test_tensors(odd: bool, tmp_path: Path) -> None:
    images = random_images(20, 4)
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=5) as sink:
        for image_id, records in images:
            boxes, scores, labels = columns(records)
            number = Tensor(image_id)
            assert number not in sink
            values = Tensor(boxes, odd=odd), Tensor(scores, odd=odd), Tensor(labels)
            assert sink.keeps(values[1], values[2]).shape == (len(records),)
            sink.add(number, *values)
            assert number in sink
            for label in labels:
                assert sink.threshold(Tensor(label)) == sink.threshold(label)
    assert records_of(tmp_path / "out.json") == best(images, 5)


def test_single_precision_is_kept_exactly(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    boxes, scores = rng.random((50, 4), np.float32), rng.random(50, np.float32)
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=50) as sink:
        sink.add(np.int32(4), boxes, scores, np.ones(50, np.uint8))
    dt = lvdet.read_detections(tmp_path / "out.json")
    assert np.array_equal(dt.score, scores)
    assert np.array_equal(dt.box, boxes)


def test_corners(tmp_path: Path) -> None:
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=5, box_format="xyxy") as sink:
        sink.add(1, np.array([[10, 20, 15.5, 30], [1, 1, 1, 1]]), [0.5, 0.25], [1, 1])
        sink.add(2, np.zeros((0, 4)), [], [])
    dt = lvdet.read_detections(tmp_path / "out.json")
    assert dt.box.tolist() == [[10, 20, 5.5, 10], [1, 1, 0, 0]]


def test_labels_as_places_of_category_ids(tmp_path: Path) -> None:
    ids = [90, 3, -7]
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=1, category_ids=ids) as sink:
        sink.add(1, [[0, 0, 1, 1]] * 3, [0.5, 0.25, 0.125], [2, 0, 2])
        assert sink.thresholds == {-7: 0.5, 90: 0.25}
        assert (sink.threshold(2), sink.threshold(0), sink.threshold(1)) == (0.5, 0.25, -math.inf)
        assert sink.keeps([0.3, 0.3], [2, 0]).tolist() == [False, True]
        for label in (3, -1):
            with pytest.raises(lvdet.InputError, match=f"image 2: label {label}, expected 0 to 2"):
                sink.add(2, [[0, 0, 1, 1]], [0.5], [label])
    assert [row["category_id"] for row in records_of(tmp_path / "out.json")] == [-7, 90]


BOX = [[0.0, 0.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((5, BOX, [0.5], [1, 1]), "image 5: 1 box and 1 score for 2 labels"),
        ((5, BOX * 2, [0.5], [1]), "image 5: 2 boxes for 1 label"),
        ((5, [[0, 0, 1]], [0.5], [1]), "image 5: box has shape"),
        ((5, [[0, 0, -1, 1]], [0.5], [1]), "image 5, row 0: bbox is"),
        ((5, [[0, 0, math.inf, 1]], [0.5], [1]), "image 5, row 0: bbox is"),
        ((5, BOX * 2, [0.5, math.nan], [1, 1]), "image 5, row 1: score is nan"),
        ((5, BOX, ["x"], [1]), "image 5: score has dtype"),
        ((5, BOX, [0.5], [1.5]), "image 5, row 0: label is 1.5"),
        ((5, BOX, [0.5], ["cat"]), "image 5: label is"),
        ((5, None, [0.5], [1]), "image 5: detections need boxes or masks"),
        (("5.jpg", BOX, [0.5], [1]), "image_id is '5.jpg', expected an integer"),
        ((5.0, BOX, [0.5], [1]), "image_id is 5.0"),
        ((True, BOX, [0.5], [1]), "image_id is True"),
        ((2**63, BOX, [0.5], [1]), "image_id is 9223372036854775808"),
        ((1, BOX, [0.5], [1]), "image 1: already added"),
    ],
)
def test_what_cannot_be_added(arguments: tuple[Any, ...], says: str, tmp_path: Path) -> None:
    """The error names the image, and the sink continues without it."""
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=5) as sink:
        sink.add(1, BOX, [0.25], [1])
        with pytest.raises(lvdet.InputError) as caught:
            sink.add(*arguments)
        assert str(caught.value).startswith(says)
        assert list(sink.images) == [1]
        sink.add(2, BOX, [0.5], [1])
    assert [row["score"] for row in records_of(tmp_path / "out.json")] == [0.25, 0.5]


@pytest.mark.parametrize("box", [[[0, 0, 1]], [["a", 0, 1, 1]], [[5, 5, 4, 6]]])
def test_corners_that_cannot_be_added(box: Any, tmp_path: Path) -> None:
    with (
        lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=5, box_format="xyxy") as sink,
        pytest.raises(lvdet.InputError, match="image 5"),
    ):
        sink.add(5, box, [0.5], [1])


def test_keeps_of_what_is_no_pair(tmp_path: Path) -> None:
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=5) as sink:
        for scores, labels in (([0.5], [1, 2]), (["x"], [1]), ([0.5], [1.5])):
            with pytest.raises(lvdet.InputError, match="keeps"):
                sink.keeps(scores, labels)
        assert sink.keeps([math.nan], [1]).tolist() == [True]  # for `add` to refuse


@pytest.mark.parametrize(
    ("path", "options", "says"),
    [
        ("out.txt", {"dets_per_class": 5}, "unknown extension '.txt'"),
        ("out.json", {"dets_per_class": 0}, "dets_per_class and dets_per_image are both 0"),
        ("out.json", {"dets_per_class": -1}, "dets_per_class is -1, expected 0 or more"),
        ("out.json", {"dets_per_image": 0.5}, "dets_per_image is 0.5, expected 0 or more"),
        ("out.json", {"dets_per_class": 2.5}, "dets_per_class is 2.5"),
        ("out.json", {"dets_per_class": True}, "dets_per_class is True"),
        ("out.json", {"dets_per_class": 5, "box_format": "cxcywh"}, "box_format is 'cxcywh'"),
        ("out.json", {"dets_per_class": 5, "category_ids": ["cat"]}, "category_ids"),
        ("folder.json", {"dets_per_class": 5, "overwrite": True}, "json: not a regular file"),
    ],
)
def test_what_cannot_be_opened(
    path: str, options: dict[str, Any], says: str, tmp_path: Path
) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(lvdet.InputError, match=says):
        lvdet.TopKWriter(tmp_path / path, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]


@pytest.mark.parametrize("path", ["nowhere/out.json", "file/out.json", "n" * 250 + ".json"])
def test_a_place_that_cannot_be_written(path: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(lvdet.OutputError, match="cannot write"):
        lvdet.TopKWriter(tmp_path / path, dets_per_class=5)


def test_a_closed_sink(tmp_path: Path) -> None:
    sink = lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=5)
    sink.add(1, BOX, [0.5], [1])
    sink.close()
    sink.close()
    assert len(sink) == sink.rows == 1
    with pytest.raises(lvdet.InputError, match="the writer is closed"):
        sink.add(2, BOX, [0.5], [1])


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    file = tmp_path / "elsewhere" / "real.json"
    (tmp_path / "out.json").symlink_to(file)
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=5) as sink:
        sink.add(1, BOX, [0.5], [1])
        assert journal_of(file).is_dir()
    assert (tmp_path / "out.json").is_symlink()
    assert len(records_of(file)) == 1


def test_what_cannot_enter_is_not_written(tmp_path: Path) -> None:
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=3) as sink:
        for image_id in range(20):
            sink.add(image_id, BOX * 5, [0.5, 0.5, 0.25, 0.5, 0.5], [1] * 5)
            assert sink.rows == 3
    assert {row["image_id"] for row in records_of(tmp_path / "out.json")} == {0}


def test_defaults(tmp_path: Path) -> None:
    with lvdet.TopKWriter(tmp_path / "out.json") as sink:
        assert "dets_per_class=10000, dets_per_image=0" in repr(sink)
