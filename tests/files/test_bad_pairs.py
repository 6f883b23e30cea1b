"""Annotations and results that are good, but not of each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lvdet
from files.annotation_files import coco, lvis
from files.record_files import Json, one_line
from tabled import read_case

FOUND: list[Json] = [
    {"image_id": 4, "category_id": 90, "bbox": [1.5, 2, 10.25, 4], "score": 0.5},
    {"image_id": 30, "category_id": 2, "bbox": [0, 0, 3, 40], "score": 0.25},
]


def refused_pair(folder: Path, records: list[Json], *says: str, **options: Any) -> None:
    gt, dt = read_case(lvis(), records, folder)
    with pytest.raises(lvdet.InputError) as caught:
        lvdet.evaluate(gt, dt, **options)
    text = one_line(caught.value)
    for words in says:
        assert words in text, text


@pytest.mark.parametrize("number", [555, -4, 2**40])
def test_an_unknown_image(number: int, tmp_path: Path) -> None:
    records = [*FOUND, FOUND[0] | {"image_id": number}, FOUND[0] | {"image_id": number}]
    says = f"image_id {number} is not in {tmp_path / 'gt.json'} (2 detections)"
    for options in ({}, {"exact_lvis": True}):
        refused_pair(tmp_path, records, f"{tmp_path / 'dt.json'}, row 2: {says}", **options)


def test_an_unknown_class_is_left_out_with_a_warning(tmp_path: Path) -> None:
    unknown = [FOUND[0] | {"category_id": number} for number in (7, 6, 7)]
    result = lvdet.evaluate(*read_case(lvis(), [*unknown, *FOUND], tmp_path))
    assert [text for text in result.warnings if "3 detections" in text and "6, 7" in text]
    alone = lvdet.evaluate(*read_case(lvis(), FOUND, tmp_path))
    assert alone.warnings == []
    for name, metrics in alone.items():
        np.testing.assert_array_equal(
            list(metrics.values()), list(result[name].values()), err_msg=name
        )


def test_an_unknown_class_uses_no_budget(tmp_path: Path) -> None:
    """But does with exact_lvis, as lvis does: one per image, and the unknown one is first."""
    records = [FOUND[0] | {"category_id": 7, "score": 0.9}, FOUND[0]]
    gt, dt = read_case(lvis(), records, tmp_path)
    result = lvdet.evaluate(gt, dt, dets_per_image=1)
    exact = lvdet.evaluate(gt, dt, dets_per_image=1, exact_lvis=True)
    assert result["old"].AR > 0.4
    assert exact["old"].AR == 0
    assert "dropped" in result.warnings[0]
    assert "use up budget" in exact.warnings[0]


def test_only_unknown_classes(tmp_path: Path) -> None:
    records = [FOUND[0] | {"category_id": 1000 + number} for number in range(9)]
    refused_pair(tmp_path, records, "none of its category ids (1000, 1001, 1002, 1003, 1004, …)")


def test_no_detections(tmp_path: Path) -> None:
    for content in (lvis(), coco()):
        result = lvdet.evaluate(*read_case(content, [], tmp_path))
        for name in ("old", "fixed", "pool"):
            assert result[name].AP == 0
        assert result["old"].AR == 0
        assert [text for text in result.warnings if "has no detections" in text] == result.warnings


def test_masks_of_another_size(tmp_path: Path) -> None:
    mask = {"segmentation": {"size": [20, 50], "counts": [1000]}}
    says = "row 1: mask is 20 x 50, but image 4 is 50 x 20"
    good = {"segmentation": {"size": [50, 20], "counts": [1000]}}
    refused_pair(tmp_path, [FOUND[0] | good, FOUND[0] | mask], says)


@pytest.mark.parametrize("iou", ["segm", "boundary"])
def test_no_masks_where_they_are_compared(iou: str, tmp_path: Path) -> None:
    refused_pair(tmp_path, FOUND, f"has no masks, but iou is '{iou}'", iou=iou)
    good = {"segmentation": {"size": [50, 20], "counts": [1000]}}
    refused_pair(tmp_path, [FOUND[0] | good, FOUND[1]], "row 1: has no mask", iou=iou)
