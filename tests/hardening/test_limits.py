"""Limits are what the documentation says, and are refused one beyond them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import lvdet
from files.record_files import MASKED, ROWS, WITH_SCORE, refused, save
from lvdet import _native, bounds
from lvdet.files.records import masks_from_segmentations

PAGE = Path(__file__).resolve().parents[2] / "docs" / "hardening.md"
ROW = re.compile(r"^\| `(\w+)` \| ([\d,]+) \|", re.MULTILINE)


def test_the_table_of_limits() -> None:
    named = {name: value for name, value in vars(bounds).items() if name.isupper()}
    native = ("DEEPEST", "FARTHEST", "LARGEST_MASK", "LARGEST_RECORD", "LARGEST_SIDE")
    named |= {
        name: getattr(_native, name) for name in (*native, "LONGEST_NUMBER", "MOST_CROSSINGS")
    }
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
