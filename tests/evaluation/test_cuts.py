"""When a file counts as cut before it came, and what that does to AP."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lvdet
from lvdet.evaluation.truncation import class_cut, image_cut
from lvdet.limits.budgets import PerImage, apply
from tabled import read_case


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([300, 300, 12], (300, 2)),
        ([300, 12], (300, 1)),
        ([100] * 3 + [7], (100, 3)),
        ([77] * 6 + [5, 9], (77, 6)),
        ([77] * 6 + [76] * 6, None),  # no step at the top
        ([3] * 6 + [2] * 6, None),
        ([77] * 4, None),  # too few to say
        ([301, 300, 300], None),
        ([1] * 50, None),
        ([], None),
        ([0, 0], None),
    ],
)
def test_image_cut(counts: list[int], expected: tuple[int, int] | None) -> None:
    assert image_cut(np.array(counts, dtype=np.int64)) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        *(([limit, 12], (limit, 1)) for limit in (1_000, 3_000, 5_000, 10_000, 20_000)),
        *(([limit, 12], (limit, 1)) for limit in (30_000, 50_000, 100_000)),
        ([300, 12], None),  # usual for an image, not for a class
        ([777] * 6 + [5, 9], (777, 6)),
        ([777] * 6 + [776] * 6, None),
        ([777] * 4, None),
        ([10_001, 10_000], None),
        ([], None),
    ],
)
def test_class_cut(counts: list[int], expected: tuple[int, int] | None) -> None:
    assert class_cut(np.array(counts, dtype=np.int64)) == expected


def test_a_cut_can_raise_ap(tmp_path: Path) -> None:
    """Why nothing here is called a lower bound: 300 of class A crowd a wrong B out of image 1. It
    stood above the right B of image 2, so that without it B seems better than it is."""
    box = [0, 0, 10, 10]
    image = {"width": 100, "height": 100, "not_exhaustive_category_ids": []}
    annotations = {
        "images": [
            image | {"id": 1, "neg_category_ids": [2]},
            image | {"id": 2, "neg_category_ids": []},
        ],
        "categories": [
            {"id": 1, "name": "A", "frequency": "f"},
            {"id": 2, "name": "B", "frequency": "r"},
        ],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "area": 100},
            {"id": 2, "image_id": 2, "category_id": 2, "bbox": box, "area": 100},
        ],
    }
    results = [
        *({"image_id": 1, "category_id": 1, "score": 1 - n / 1000} for n in range(300)),
        {"image_id": 1, "category_id": 2, "score": 0.5},
        {"image_id": 2, "category_id": 2, "score": 0.4},
    ]
    gt, dt = read_case(annotations, [row | {"bbox": box} for row in results], tmp_path)
    cut = dt[apply([PerImage(300)], dt)]
    assert len(cut) == len(dt) - 1
    whole, found = (lvdet.evaluate(gt, table, protocols="fixed") for table in (dt, cut))
    assert pytest.approx(0.75) == whole["fixed"].AP
    assert pytest.approx(1) == found["fixed"].AP
    assert lvdet.audit(gt, cut).standing["fixed"] == "incomplete"
    assert "misses the dropped detections and is usually too low" in found.warnings[0]
