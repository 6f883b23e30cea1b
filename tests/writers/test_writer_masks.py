"""Masks through a sink: pixels, run lengths and polygons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lvdet
from files.record_files import assert_holds, encoded
from writers.test_top_k_writer import Tensor, small_journal

RLE = {"size": [4, 3], "counts": "174"}
RUNS = {"size": [4, 3], "counts": [1, 7, 4]}
POLYGONS = [[1.0, 1.0, 5.5, 1.0, 5.5, 6.25], [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]]


def pixels(count: int, seed: int = 0, size: tuple[int, int] = (30, 20)) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random((count, *size)) < 0.4


@pytest.mark.parametrize(
    "form",
    [
        lambda masks: masks,
        lambda masks: masks.astype(np.uint8),
        lambda masks: [*masks],
        Tensor,
        lambda masks: [Tensor(mask) for mask in masks],
        lambda masks: [encoded(mask) for mask in masks],
        lambda masks: np.array([encoded(mask) for mask in masks], dtype=object),
    ],
    ids=["bool", "uint8", "list", "tensor", "list of tensors", "rle", "array of rle"],
)
@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_pixels(form: Any, ending: str, tmp_path: Path) -> None:
    """Several images of different sizes, of which some rows are kept; compaction included."""
    target = tmp_path / f"out{ending}"
    records = []
    with small_journal(10, 2000), lvdet.TopKWriter(target, dets_per_class=12) as sink:
        for image_id in range(20):
            rng = np.random.default_rng(image_id)
            masks = pixels(5, image_id, (20 + image_id, 33))
            scores = (rng.permutation(5) / 64 + image_id / 32).tolist()
            box = [1.0, 2.0, 3.0, 4.0]
            sink.add(image_id, [box] * 5, scores, [7] * 5, form(masks))
            keys = ("image_id", "category_id", "bbox", "score", "segmentation")
            records += [
                dict(zip(keys, (image_id, 7, box, score, encoded(mask)), strict=True))
                for score, mask in zip(scores, masks, strict=True)
            ]
        assert sink.rows < 60
    best = sorted(records, key=lambda row: -row["score"])[:12]
    assert_holds(lvdet.read_detections(target), [row for row in records if row in best])


def test_segmentations(tmp_path: Path) -> None:
    forms = [RLE, RUNS, POLYGONS, POLYGONS[:1], RLE | {"counts": b"174"}]
    with lvdet.TopKWriter(tmp_path / "out.parquet", dets_per_class=10) as sink:
        sink.add(3, [[0.0, 0.0, 1.0, 1.0]] * 5, [0.5] * 5, range(5), forms)
    base = {"image_id": 3, "score": 0.5, "bbox": [0.0, 0.0, 1.0, 1.0]}
    expected = [RLE, RLE, POLYGONS, POLYGONS[:1], RLE]
    assert_holds(
        lvdet.read_detections(tmp_path / "out.parquet"),
        [base | {"category_id": n, "segmentation": form} for n, form in enumerate(expected)],
    )


def test_boxes_from_masks(tmp_path: Path) -> None:
    masks = np.zeros((2, 10, 12), dtype=np.bool_)
    masks[0, 2:5, 3:9] = True
    with lvdet.TopKWriter(tmp_path / "out.parquet", dets_per_class=10) as sink:
        sink.add(3, None, [0.5, 0.25], [1, 1], masks)
    dt = lvdet.read_detections(tmp_path / "out.parquet")
    assert dt.box.tolist() == [[3, 2, 6, 3], [0, 0, 0, 0]]
    assert not dt.boxes_given


@pytest.mark.parametrize("ending", [".json", ".parquet"])
@pytest.mark.parametrize("given", [0, 1])
def test_boxes_from_the_masks_of_some_images(given: int, ending: str, tmp_path: Path) -> None:
    masks = np.zeros((1, 10, 12), dtype=np.bool_)
    masks[0, 2:5, 3:9] = True
    boxes: list[Any] = [None, None]
    boxes[given] = [[1.0, 2.0, 30.0, 40.0]]
    with lvdet.TopKWriter(tmp_path / f"out{ending}", dets_per_class=10) as sink:
        for image_id, box in enumerate(boxes):
            sink.add(image_id, box, [0.5], [1], masks)
    dt = lvdet.read_detections(tmp_path / f"out{ending}")
    expected = [[3, 2, 6, 3], [3, 2, 6, 3]]
    expected[given] = [1, 2, 30, 40]
    assert dt.box.tolist() == expected
    assert dt.boxes_given


def test_masks_of_what_is_not_kept_are_not_looked_at(tmp_path: Path) -> None:
    box = [[0.0, 0.0, 1.0, 1.0]]
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=1) as sink:
        sink.add(1, box, [0.5], [1], [RLE])
        keeps = sink.keeps([0.25, 0.75, 0.5], [1, 1, 1])
        assert keeps.tolist() == [False, True, False]
        sink.add(2, box * 3, [0.25, 0.75, 0.5], [1] * 3, [RUNS if k else None for k in keeps])
        sink.add(3, box, [0.25], [1], [None])
        sink.add(4, box, [0.25], [1], np.zeros((1, 0, 0), np.bool_))
        sink.add(5, [], [], [], [])
        sink.add(6, np.zeros((0, 4)), [], [], np.zeros((0, 5, 6), np.bool_))
        sink.add(7, [], [], [])
    dt = lvdet.read_detections(tmp_path / "out.json")
    assert dt.image_ids.tolist() == [2]
    assert dt.masks is not None
    assert dt.masks.row(0) == b"174"


@pytest.mark.parametrize(
    ("masks", "says"),
    [
        ([RLE], "image 5: 1 mask for 2 labels"),
        (pixels(3), "image 5: 3 masks for 2 labels"),
        ([RLE, None], "image 5, row 1: the mask is missing"),
        ([pixels(1)[0], None], "image 5, row 1: masks are"),
        ([RLE, {"size": [4, 3], "counts": "1"}], "image 5, row 1: "),
        ([RLE, [[1.0, 2.0]]], "image 5, row 1: invalid segmentation"),
        ([RLE, "174"], "image 5, row 1: invalid segmentation"),
        (np.zeros((2, 1, 5, 5), np.uint8), "image 5: masks are uint8 with shape (2, 1, 5, 5)"),
        (np.full((2, 5, 5), 0.5), "image 5: masks are float64"),
        ([np.full((5, 5), 0.5)] * 2, "image 5, row 0: masks are float64"),
        (iter([RLE, RLE]), "image 5: masks are a list_iterator, expected a list"),
        (np.zeros((2, 0, 5), np.bool_), "image 5: masks are 0 x 5 pixels"),
        (None, "image 5: has no masks, earlier images have masks"),
    ],
)
def test_masks_that_cannot_be_used(masks: Any, says: str, tmp_path: Path) -> None:
    """The sink continues without the image."""
    box = [[0.0, 0.0, 1.0, 1.0]]
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=10) as sink:
        sink.add(1, box, [0.5], [1], [RLE])
        with pytest.raises(lvdet.InputError) as caught:
            sink.add(5, box * 2, [0.5, 0.25], [1, 1], masks)
        assert str(caught.value).startswith(says)
        assert 5 not in sink
        sink.add(2, box, [0.5], [1], [RLE])
    assert len(lvdet.read_detections(tmp_path / "out.json")) == 2


def test_masks_after_boxes_without(tmp_path: Path) -> None:
    box = [[0.0, 0.0, 1.0, 1.0]]
    with lvdet.TopKWriter(tmp_path / "out.json", dets_per_class=10) as sink:
        sink.add(1, box, [0.5], [1])
        with pytest.raises(lvdet.InputError, match="image 2: has masks, earlier images have no"):
            sink.add(2, box, [0.5], [1], [RLE])
