"""Masks of detections: their forms, where they are missing, and boxes made from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lvdet
from files.record_files import Json, assert_holds, bits, encoded, save
from lvdet import _native
from lvdet.tables.masks import NONE, RLE
from oracles.cases import decoded, runs_of

BASE: Json = {"image_id": 1, "category_id": 2, "score": 0.5}
BOX = [1.0, 2.0, 3.0, 4.0]
COMPRESSED = {"size": [4, 3], "counts": "174"}
PLAIN = {"size": [4, 3], "counts": [1, 7, 4]}
POLYGONS = [[1.0, 1.0, 5.5, 1.0, 5.5, 6.25], [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]]


@pytest.mark.parametrize("segmentation", [COMPRESSED, PLAIN, POLYGONS, POLYGONS[:1]])
@pytest.mark.parametrize("box", [{"bbox": BOX}, {}])
def test_forms(segmentation: Any, box: Json, tmp_path: Path) -> None:
    records = [BASE | box | {"segmentation": segmentation}] * 3
    for source in (save(tmp_path / "r.json", records), records):
        dt = lvdet.read_detections(source)
        assert_holds(dt, records)
        assert dt.boxes_given == bool(box)


def test_both_forms_of_rle_are_one(tmp_path: Path) -> None:
    records = [BASE | {"bbox": BOX, "segmentation": form} for form in (COMPRESSED, PLAIN)]
    masks = lvdet.read_detections(save(tmp_path / "r.json", records)).masks
    assert masks is not None
    assert masks.row(0) == masks.row(1) == b"174"


@pytest.mark.parametrize(
    "text",
    [
        '{"size": [4, 3], "counts": "174"}',
        '{"counts":"174","size":[4,3]}',
        '{"size": [4.0, 3e0], "counts": "174", "extra": [{"counts": 1}]}',
        r'{"s\u0069ze": [4, 3], "\u0063ounts": "\u0031\u00374"}',
        '{"size": [9, 9], "counts": "0", "counts": "174", "size": [4, 3]}',
        '{"size": [4, 3], "counts": [12], "counts": "174"}',
        '{"counts": [1, 7.0, 4e0], "size": [4, 3]}',
    ],
)
def test_texts_of_the_same_mask(text: str, tmp_path: Path) -> None:
    record = json.dumps(BASE | {"bbox": BOX})[:-1] + f', "segmentation": {text}}}'
    dt = lvdet.read_detections(save(tmp_path / "r.json", f"[{record}]"))
    assert_holds(dt, [BASE | {"bbox": BOX, "segmentation": COMPRESSED}])


def test_backslashes_in_counts(tmp_path: Path) -> None:
    """The compressed alphabet runs from '0' to 'o' and holds the backslash."""
    pixels = np.zeros((200, 200), dtype=np.uint8)
    rng = np.random.default_rng(3)
    records = []
    while not any("\\" in record["segmentation"]["counts"] for record in records[-1:]):
        pixels[rng.integers(200, size=4), rng.integers(200, size=4)] = 1
        records.append(BASE | {"bbox": BOX, "segmentation": encoded(pixels)})
    text = json.dumps(records)
    assert "\\\\" in text
    for path in (
        save(tmp_path / "a.json", text),
        save(tmp_path / "b.json", text.replace("\\\\", r"\u005c")),
        save(tmp_path / "c.jsonl", "\n".join(json.dumps(record) for record in records)),
    ):
        assert_holds(lvdet.read_detections(path), records)


@pytest.mark.parametrize("with_mask", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (0, 1, 1)])
@pytest.mark.parametrize("missing", ["no key", "null"])
def test_masks_missing_in_some_rows(
    with_mask: tuple[int, ...], missing: str, tmp_path: Path
) -> None:
    empty: Json = {} if missing == "no key" else {"segmentation": None}
    records = [
        BASE | {"bbox": BOX} | ({"segmentation": COMPRESSED} if has else empty) for has in with_mask
    ]
    for source in (save(tmp_path / "r.json", records), records):
        dt = lvdet.read_detections(source)
        assert_holds(dt, records)
        assert dt.masks is not None
        assert dt.masks.kind.tolist() == [RLE if has else NONE for has in with_mask]


def test_of_equal_keys_the_last_mask_counts(tmp_path: Path) -> None:
    """Nothing is left of the one before: neither its bytes nor its size."""
    masked = json.dumps(BASE | {"bbox": BOX, "segmentation": COMPRESSED})
    texts = [f'{masked[:-1]}, "segmentation": null}}']
    texts.append(f'{masked[:-1]}, "segmentation": {json.dumps(POLYGONS)}}}')
    texts.append(json.dumps(BASE | {"bbox": BOX, "segmentation": POLYGONS})[:-1])
    texts[-1] += f', "segmentation": {json.dumps(COMPRESSED)}}}'
    text = f"[{masked}, {', '.join(texts)}]"
    dt = lvdet.read_detections(save(tmp_path / "r.json", text))
    assert_holds(dt, json.loads(text))
    assert dt.masks is not None
    assert dt.masks.height.tolist() == [4, 0, 0, 4]
    assert dt.masks.width.tolist() == [3, 0, 0, 3]


def test_a_table_without_masks(tmp_path: Path) -> None:
    records = [BASE | {"bbox": BOX, "segmentation": None}]
    assert lvdet.read_detections(save(tmp_path / "r.json", records)).masks is None


def test_masks_are_passed_by_when_not_wanted(tmp_path: Path) -> None:
    records = [BASE | {"bbox": BOX, "segmentation": form} for form in (COMPRESSED, POLYGONS)]
    dt = lvdet.read_detections(save(tmp_path / "r.json", records), masks=False)
    assert_holds(dt, records, masks=False)
    assert dt.boxes_given


def test_masks_not_wanted_still_give_the_boxes(tmp_path: Path) -> None:
    records = [BASE | {"segmentation": COMPRESSED}, BASE | {"segmentation": PLAIN}]
    dt = lvdet.read_detections(save(tmp_path / "r.json", records), masks=False)
    assert dt.box.tolist() == [[0.0, 0.0, 2.0, 4.0]] * 2
    assert not dt.boxes_given


@pytest.mark.parametrize("masks", [True, False])
def test_neither_a_box_nor_a_mask(masks: bool, tmp_path: Path) -> None:
    path = save(tmp_path / "r.json", [BASE | {"segmentation": None}])
    with pytest.raises(lvdet.InputError, match="neither bbox nor segmentation"):
        lvdet.read_detections(path, masks=masks)


def test_boxes_where_some_rows_have_none(tmp_path: Path) -> None:
    records = [
        BASE | {"bbox": BOX, "segmentation": COMPRESSED},
        BASE | {"segmentation": COMPRESSED},
        BASE | {"bbox": BOX},
    ]
    for source in (save(tmp_path / "r.json", records), records):
        dt = lvdet.read_detections(source)
        assert_holds(dt, records)
        assert dt.box[1].tolist() == coco_mask.toBbox(COMPRESSED).tolist() == [0, 0, 2, 4]


# Against pycocotools


@st.composite
def pixel_masks(draw: st.DrawFn) -> NDArray[np.uint8]:
    """Blots, columns, full and empty masks of any small size."""
    height, width = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    pixels = np.zeros((height, width), dtype=np.uint8)
    for _ in range(draw(st.integers(0, 4))):
        x, y = draw(st.integers(0, width - 1)), draw(st.integers(0, height - 1))
        w, h = draw(st.integers(1, width)), draw(st.integers(1, height))
        pixels[y : y + h, x : x + w] = draw(st.sampled_from([1, 1, 0]))
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        pixels ^= (rng.random(pixels.shape) < draw(st.sampled_from([0.01, 0.3]))).astype(np.uint8)
    return pixels


@settings(max_examples=120)
@given(st.lists(pixel_masks(), min_size=1, max_size=8), st.booleans())
def test_boxes_are_those_of_pycocotools(
    tmp_path_factory: pytest.TempPathFactory, masks: list[NDArray[np.uint8]], plain: bool
) -> None:
    segmentations = [encoded(pixels) for pixels in masks]
    records = [
        BASE
        | {
            "segmentation": {"size": list(pixels.shape), "counts": runs_of(pixels)}
            if plain
            else rle
        }
        for pixels, rle in zip(masks, segmentations, strict=True)
    ]
    expected = [coco_mask.toBbox(rle).tolist() for rle in segmentations]
    path = save(tmp_path_factory.getbasetemp() / "masks.json", records)
    for source in (path, records):
        dt = lvdet.read_detections(source)
        assert dt.box.tolist() == expected
        assert dt.masks is not None
        for row, (pixels, rle) in enumerate(zip(masks, segmentations, strict=True)):
            assert dt.masks.row(row) == rle["counts"].encode()
            size = [int(dt.masks.height[row]), int(dt.masks.width[row])]
            assert np.array_equal(decoded({"size": size, "counts": dt.masks.row(row)}), pixels)


def test_boxes_of_polygons_are_their_corners(tmp_path: Path) -> None:
    records = [BASE | {"segmentation": POLYGONS}]
    for source in (save(tmp_path / "r.json", records), records):
        dt = lvdet.read_detections(source)
        assert bits(dt.box) == bits([[0.0, 0.0, 5.5, 6.25]])


@settings(max_examples=100)
@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=60))
def test_runs_are_encoded_as_pycocotools_does(runs: list[int]) -> None:
    rle = coco_mask.frPyObjects({"size": [sum(runs), 1], "counts": runs}, sum(runs), 1)
    data, ends = _native.rle_encode(
        np.array(runs, dtype=np.uint32), np.array([0, len(runs)], dtype=np.int64)
    )
    assert data.tobytes() == rle["counts"]
    assert ends.tolist() == [0, len(rle["counts"])]
