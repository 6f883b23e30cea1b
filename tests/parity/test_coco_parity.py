"""COCO's twelve numbers against pycocotools, AP-Pool against the slow reference."""

from __future__ import annotations

from pathlib import Path

import pytest

import lvdet
from long_cases import first
from oracles.cases import coco_case
from oracles.coco_reference import evaluate_coco
from oracles.pool_reference import evaluate_pool, evaluate_slow
from tabled import assert_agree, read_case

BATCH = 25


def check(seed: int, masks: bool, folder: Path) -> None:
    annotations, results = coco_case(seed, masks)
    gt, dt = read_case(annotations, results, folder)
    iou = "segm" if masks else "bbox"
    ours = lvdet.evaluate(gt, dt, iou=iou, exact_lvis=True)
    assert_agree(ours["old"], evaluate_coco(annotations, results, iou), f"seed {seed}, {iou}")
    assert_agree(
        ours["pool"], evaluate_pool(annotations, results, iou), f"seed {seed}, {iou}, pool"
    )


@pytest.mark.parametrize("batch", first(8, range(440)))
def test_coco(batch: int, tmp_path: Path) -> None:
    """Boxes or masks by turns: 350 cases, and 10,650 more in `make test-long`."""
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        check(seed, batch % 2 == 1, tmp_path)


def test_corrected_default(tmp_path: Path) -> None:
    """Id 0 is an id like any other, unless asked to be exact."""
    for seed in range(50):
        annotations, results = coco_case(seed, False)
        known = {category["id"] for category in annotations["categories"]}
        if not any(record["category_id"] in known for record in results):
            continue
        gt, dt = read_case(annotations, results, tmp_path)
        reference = evaluate_slow(annotations, results, "bbox", exact_lvis=False)
        ours = lvdet.evaluate(gt, dt)["old"]
        names = [name for name in reference if not name.startswith(("APr", "APc", "APf"))]
        assert_agree(ours, {name: reference[name] for name in names}, f"seed {seed}")


def test_coco_file_has_cocos_names_and_budget(tmp_path: Path) -> None:
    gt, dt = read_case(*coco_case(1, False), tmp_path)
    old = lvdet.evaluate(gt, dt, exact_lvis=True)["old"]
    assert old.budget == "100/image/class"
    assert {"AR1", "AR10", "AR100"} <= set(old)
    assert old.AR == old.AR100
