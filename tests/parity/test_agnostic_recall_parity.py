"""Class-agnostic recall against pycocotools' `useCats = 0`, and brute force on LVIS files."""

from __future__ import annotations

from pathlib import Path

import pytest

import lvdet
from long_cases import first
from oracles.cases import coco_case, lvis_case
from oracles.coco_reference import recall_of_any_class
from oracles.lvis_reference import drop_unknown
from oracles.recall_reference import recall_of_any_class_slow
from tabled import assert_agree, read_case

BATCH = 10
#: Below most files' detections, ties among them, and above.
LIMITS = [3, 1, 8, 1000]


@pytest.mark.parametrize("batch", first(4, range(100)))
def test_coco(batch: int, tmp_path: Path) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        masks = batch % 2 == 1
        annotations, results = coco_case(seed, masks)
        gt, dt = read_case(annotations, results, tmp_path)
        iou = "segm" if masks else "bbox"
        expected = recall_of_any_class(annotations, results, iou, LIMITS)
        for source in (dt, tmp_path / "dt.json"):
            found = lvdet.evaluate(
                gt, source, iou=iou, protocols=[], agnostic_recall=LIMITS, exact_lvis=True
            )
            for limit, ours in zip(LIMITS, found.agnostic_recall, strict=True):
                assert ours.budget == f"{limit}/image"
                assert_agree(ours, expected[limit], f"seed {seed}, {iou}, {limit}")


@pytest.mark.parametrize("batch", first(4, range(100)))
def test_lvis(batch: int, tmp_path: Path) -> None:
    """Reading a file, too: boxes of classes that were not verified are there."""
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        masks = batch % 2 == 1
        annotations, results = lvis_case(seed, masks)
        if not drop_unknown(annotations, results):
            continue
        gt, dt = read_case(annotations, results, tmp_path)
        iou = "segm" if masks else "bbox"
        for limit in (3, 1000):
            expected = recall_of_any_class_slow(annotations, results, iou, limit)
            for source in (dt, tmp_path / "dt.json"):
                found = lvdet.evaluate(gt, source, iou=iou, protocols=[], agnostic_recall=[limit])
                assert_agree(found.agnostic_recall[0], expected, f"seed {seed}, {iou}, {limit}")
