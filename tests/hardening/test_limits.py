"""Limits are what the documentation says, and are refused one beyond them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from files.record_files import MASKED, ROWS, WITH_SCORE, refused, save
from lvdet import _native, bounds
from lvdet.files.records import masks_from_segmentations

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hardening.md"
ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \|", re.MULTILINE)


def test_the_table_of_limits() -> None:
    named = {name: value for name, value in vars(bounds).items() if name.isupper()}
    native = (
        *("CROSSINGS", "CROSSINGS_PER_BYTE", "DEEPEST", "FARTHEST", "LARGEST_BOUNDARY"),
        *("LARGEST_MASK", "LARGEST_RECORD", "LARGEST_SIDE", "LONGEST_NUMBER", "MOST_CROSSINGS"),
    )
    named |= {name: getattr(_native, name) for name in native}
    found = dict(ROW.findall(PAGE.read_text(encoding="utf-8")))
    assert {name: int(value.replace(",", "")) for name, value in found.items()} == named


def test_long_numbers(tmp_path: Path) -> None:
    most = "0." + "1" * (_native.LONGEST_NUMBER - 2)
    lvdet.read_detections(save(tmp_path / "r.json", f"[{WITH_SCORE % most}]"))
    refused(
        save(tmp_path / "r.json", f"[{WITH_SCORE % (most + '1')}]"), "more than 4,096 characters"
    )


def test_deep_values(tmp_path: Path) -> None:
    def nested(levels: int) -> str:
        return f'[{{"a": {"[" * levels}{"]" * levels}, {json.dumps(ROWS[0])[1:]}]'

    lvdet.read_detections(save(tmp_path / "r.json", nested(_native.DEEPEST)))
    refused(save(tmp_path / "r.json", nested(_native.DEEPEST + 2)), "more than 512 levels deep")


def test_sides(tmp_path: Path) -> None:
    for side, fits in ((_native.LARGEST_SIDE, True), (_native.LARGEST_SIDE + 1, False)):
        mask = {"size": [side, 1], "counts": [side]}
        path = save(tmp_path / "r.json", [MASKED[0] | {"segmentation": mask}])
        if fits:
            lvdet.read_detections(path)
        else:
            refused(path, "RLE has no valid size")


@pytest.mark.long
def test_edges_that_cross_too_many_columns() -> None:
    """Each edge crosses the whole image."""
    side = _native.LARGEST_SIDE
    edges = _native.MOST_CROSSINGS // side
    for count, fits in ((4, True), (edges + 2, False)):
        points = [
            [0, side][place % 2] if axis == 0 else place % 3
            for place in range(count)
            for axis in (0, 1)
        ]
        masks = masks_from_segmentations([[points]])
        sizes = np.array([2], np.int32), np.array([side], np.int32)
        if fits:
            _native.mask_runs(masks.columns, *sizes, False)
        else:
            with pytest.raises(ValueError, match="cross more than 16,777,216 columns"):
                _native.mask_runs(masks.columns, *sizes, False)


def columns_crossed(points: list[float], width: int) -> int:
    """By the definition: the centre of column c is between 5c + 2 and 5c + 3, at five times the
    resolution."""
    x = [int(5 * value + 0.5) for value in points[::2]]
    edges = zip(x, [*x[1:], x[0]], strict=True)
    return sum(min(a, b) <= 5 * c + 2 < max(a, b) for a, b in edges for c in range(width))


@given(
    st.lists(
        st.lists(st.floats(-50, 90, width=16), min_size=6, max_size=12).map(
            lambda numbers: numbers[: len(numbers) // 2 * 2]
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 40),
)
def test_crossings_are_counted(parts: list[list[float]], width: int) -> None:
    masks = masks_from_segmentations([parts, parts[:1]])
    expected = [sum(columns_crossed(part, width) for part in some) for some in (parts, parts[:1])]
    found = _native.mask_crossings(masks.columns, np.full(2, width, np.int32))
    assert found == sum(expected)


def test_polygons_that_cross_too_many_columns_together(tmp_path: Path) -> None:
    """Each is a few bytes of the file, and small enough by itself."""
    side = 10_000
    edges = [[0, side][place % 2] if axis == 0 else 5 for place in range(200) for axis in (0, 1)]
    crossed = 200 * side
    image = {"id": 1, "height": 10, "width": side}
    square = {"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "area": 100}
    square |= {"bbox": [0, 0, 10, 10], "segmentation": [[0, 0, 10, 0, 10, 10, 0, 10]]}
    gt = {"images": [image], "categories": [{"id": 1, "name": "a"}], "annotations": [square]}
    row = {"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": [edges]}
    fits = _native.CROSSINGS // crossed
    for count in (1, fits + 1):
        paths = save(tmp_path / "gt.json", gt), save(tmp_path / "dt.json", [row] * count)
        if count <= fits:
            assert lvdet.evaluate(*paths, iou="segm")["fixed"].AP == 0
            continue
        total = f"cross {count * crossed:,} columns of their images, expected at most 67,108,864"
        with pytest.raises(lvdet.InputError, match=f"dt.json: the edges of all polygons {total}"):
            lvdet.evaluate(*paths, iou="segm")
        square["segmentation"] = [edges] * count
        paths = save(tmp_path / "gt.json", gt), save(tmp_path / "dt.json", [row])
        with pytest.raises(lvdet.InputError, match=r"gt.json: the edges of all polygons"):
            lvdet.evaluate(*paths, iou="segm")


def test_boundaries_of_masks_in_large_boxes(tmp_path: Path) -> None:
    """Corners of an image far apart; the same mask is no problem where it is not to be compared."""
    side = 1 << 17
    corners = [[0, 0, 9, 0, 0, 9], [side, side, side - 9, side, side, side - 9]]
    image = {"id": 1, "height": side, "width": side}
    object_ = {"id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "area": 2}
    object_ |= {"bbox": [0, 0, side, side], "segmentation": corners}
    gt = {"images": [image], "categories": [{"id": 1, "name": "a"}], "annotations": [object_]}
    row = {"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": corners}
    paths = save(tmp_path / "gt.json", gt), save(tmp_path / "dt.json", [row])
    assert pytest.approx(1) == lvdet.evaluate(*paths, iou="segm")["fixed"].AP
    with pytest.raises(lvdet.InputError, match=r"dt.json, row 0: .* more than 4,294,967,296"):
        lvdet.evaluate(*paths, iou="boundary")
    masks = masks_from_segmentations([corners])
    size = np.array([side], np.int32)
    with pytest.raises(ValueError, match="more than 4,294,967,296 pixels"):
        _native.mask_runs(masks.columns, size, size, True)
