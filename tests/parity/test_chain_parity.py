"""Chains of limits against lvis and pycocotools on results that were cut by hand in that order."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import lvdet
from long_cases import first
from lvdet.limits.budgets import describe, parse_budget
from oracles.cases import coco_case, lvis_case
from oracles.coco_reference import evaluate_coco_at
from oracles.lvis_reference import cut_per_class, cut_per_image, evaluate_lvis
from tabled import assert_agree, read_case

BATCH = 20
Rows = Sequence[dict[str, Any]]


def cut_per_image_class(results: Rows, k: int) -> list[dict[str, Any]]:
    """The k best of each class in each image, as pycocotools takes them."""
    cells: dict[tuple[int, int], list[int]] = {}
    for row, result in enumerate(results):
        cells.setdefault((result["image_id"], result["category_id"]), []).append(row)
    kept = {
        row
        for rows in cells.values()
        for row in sorted(rows, key=lambda row: -results[row]["score"])[:k]
    }
    return [result for row, result in enumerate(results) if row in kept]


CUTS: dict[str, Callable[[Rows, int], list[dict[str, Any]]]] = {
    "image": cut_per_image,
    "class": cut_per_class,
    "image/class": cut_per_image_class,
}


def drawn(rng: random.Random) -> list[tuple[int, str]]:
    """Two or three limits, of any kinds and in any order."""
    return [(rng.randint(1, 6), rng.choice(list(CUTS))) for _ in range(rng.choice([2, 2, 3]))]


@pytest.mark.parametrize("batch", first(5, range(100)))
def test_a_chain_is_lvis_on_a_cut_file(batch: int, tmp_path: Path) -> None:
    """From tables, and from files, of which only what the first limit keeps is held."""
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng, masks = random.Random(f"chain {seed}"), seed % 4 == 3
        annotations, results = lvis_case(50_000 + seed, masks)
        gt, dt = read_case(annotations, results, tmp_path)
        iou, steps = "segm" if masks else "bbox", drawn(rng)
        text = ",".join(f"{limit}/{unit}" for limit, unit in steps)
        cut = list(results)
        for limit, unit in steps:
            cut = CUTS[unit](cut, limit)
        expected = evaluate_lvis(annotations, cut, iou, -1)
        for given in ((gt, dt), (tmp_path / "gt.json", tmp_path / "dt.json")):
            ours = lvdet.evaluate(
                *given, iou=iou, budgets=[parse_budget(text)], protocols=[], exact_lvis=True
            )
            assert list(ours) == [text]
            assert ours[text].budget == text
            assert_agree(ours[text], expected, f"seed {seed}, {text}, {iou}")


@pytest.mark.parametrize("batch", first(3, range(50)))
def test_a_limit_per_image_and_class_is_pycocotools_with_that_limit(
    batch: int, tmp_path: Path
) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        masks = seed % 4 == 3
        annotations, results = coco_case(60_000 + seed, masks)
        gt, dt = read_case(annotations, results, tmp_path)
        iou = "segm" if masks else "bbox"
        for limit in (300, 2):
            chain = (lvdet.PerImageClass(limit),)
            ours = lvdet.evaluate(gt, dt, iou=iou, budgets=[chain], exact_lvis=True)
            reference = evaluate_coco_at(annotations, results, iou, limit)
            assert_agree(ours[describe(chain)], reference, f"seed {seed}, {limit}, {iou}")


def test_a_limit_of_300_bites(tmp_path: Path) -> None:
    """One class in one image with 500 detections: pycocotools' usual 100, and V3Det's 300."""
    rng = random.Random(7)
    image = {"id": 1, "height": 1000, "width": 1000}
    boxes = [[20 * place, 30, 15, 15] for place in range(40)]
    annotations = {
        "images": [image],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [
            {"id": n, "image_id": 1, "category_id": 1, "bbox": box, "area": 225, "iscrowd": 0}
            for n, box in enumerate(boxes, start=1)
        ],
    }
    results = [
        {
            "image_id": 1,
            "category_id": 1,
            "bbox": rng.choice(boxes) if rng.random() < 0.05 else [500, 500, 9, 9],
            "score": rng.randint(1, 20) / 20,
        }
        for _ in range(500)
    ]
    gt, dt = read_case(annotations, json.loads(json.dumps(results)), tmp_path)
    limits = [(lvdet.PerImageClass(n),) for n in (100, 300, 500)]
    ours = lvdet.evaluate(gt, dt, budgets=limits, exact_lvis=True)
    found = [ours[describe(chain)].AR for chain in limits]
    assert found[0] < found[1] < found[2]
    for chain in limits:
        reference = evaluate_coco_at(annotations, results, "bbox", chain[0].limit)
        assert_agree(ours[describe(chain)], reference, describe(chain))
