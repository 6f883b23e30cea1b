"""AP-Old, AP-Fixed and AP-Pool against lvis and the slow references, on random cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lvdet
from long_cases import first
from oracles.cases import lvis_case, without_boxes
from oracles.lvis_reference import (
    cut_per_class,
    cut_per_image,
    drop_unknown,
    evaluate_lvis,
    evaluate_lvis_per_class,
)
from oracles.pool_reference import evaluate_pool, evaluate_slow
from tabled import TOLERANCE, assert_agree, read_case

BATCH = 25


def check_exact(seed: int, masks: bool, folder: Path) -> None:
    """With exact_lvis, every number is lvis's, quirks included."""
    annotations, results = lvis_case(seed, masks)
    gt, dt = read_case(annotations, results, folder)
    for iou in ("segm", "bbox") if masks else ("bbox",):
        for limit in (300, 5):
            ours = lvdet.evaluate(
                gt, dt, iou=iou, protocols=["old"], dets_per_image=limit, exact_lvis=True
            )
            reference = evaluate_lvis(annotations, results, iou, limit)
            assert_agree(ours["old"], reference, f"seed {seed}, {iou}, {limit} an image")
        for limit in (10_000, 4):
            ours = lvdet.evaluate(gt, dt, iou=iou, dets_per_class=limit, exact_lvis=True)
            cut = cut_per_class(results, limit)
            assert_agree(
                ours["fixed"],
                evaluate_lvis(annotations, cut, iou, -1),
                f"seed {seed}, {iou}, {limit} a class",
            )
            assert_agree(
                ours["pool"],
                evaluate_pool(annotations, results, iou, limit),
                f"seed {seed}, {iou}, pool of {limit} a class",
            )


def check_corrected(seed: int, masks: bool, folder: Path) -> None:
    """By default, every number equals the slow reference's with the corrections."""
    annotations, results = lvis_case(seed, masks)
    known = drop_unknown(annotations, results)
    if not known:
        return  # refused; tested with the readers
    gt, dt = read_case(annotations, results, folder)
    iou = "segm" if masks else "bbox"
    plain = without_boxes(known) if masks else known
    ours = lvdet.evaluate(gt, dt, iou=iou, dets_per_image=5, dets_per_class=4)
    reference = evaluate_slow(annotations, cut_per_image(plain, 5), iou, exact_lvis=False)
    assert_agree(ours["old"], reference, f"seed {seed}, {iou}, corrected, 5 per image")
    reference = evaluate_slow(annotations, cut_per_class(plain, 4), iou, exact_lvis=False)
    assert_agree(ours["fixed"], reference, f"seed {seed}, {iou}, corrected, 4 per class")
    reference = evaluate_pool(annotations, results, iou, 4, exact_lvis=False)
    assert_agree(ours["pool"], reference, f"seed {seed}, {iou}, corrected, pool")


@pytest.mark.parametrize("batch", first(5, range(848)))
def test_exact_and_corrected(batch: int, tmp_path: Path) -> None:
    """Boxes or masks by turns: 200 cases, and 21,000 more in `make test-long`."""
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        check_exact(seed, batch % 2 == 1, tmp_path)
        check_corrected(seed, batch % 2 == 1, tmp_path)


@pytest.mark.parametrize("masks", [False, True])
def test_default_differs_only_where_it_says(masks: bool, tmp_path: Path) -> None:
    """Without id 0, empty annotations and unknown classes, the default is lvis's own number
    (for masks without boxes, whose area lvis would use)."""
    for seed in range(50):
        annotations, results = lvis_case(seed, masks, quirks=False)
        if masks:
            results = without_boxes(results)
        gt, dt = read_case(annotations, results, tmp_path)
        iou = "segm" if masks else "bbox"
        ours = lvdet.evaluate(gt, dt, iou=iou, dets_per_image=6)
        assert_agree(ours["old"], evaluate_lvis(annotations, results, iou, 6), f"seed {seed}")
        corrections = [text for text in ours.warnings if "has equal scores" not in text]
        assert not corrections, corrections


def test_each_correction_is_named_in_a_warning(tmp_path: Path) -> None:
    seen = {"id 0": 0, "area 0": 0, "not in": 0}
    for seed in range(60):
        annotations, results = lvis_case(seed, False)
        if not drop_unknown(annotations, results):
            continue
        gt, dt = read_case(annotations, results, tmp_path)
        text = " ".join(lvdet.evaluate(gt, dt).warnings)
        ids = {category["id"] for category in annotations["categories"]}
        present = {
            "id 0": any(a["id"] == 0 for a in annotations["annotations"]),
            "area 0": any(a["area"] <= 0 for a in annotations["annotations"]),
            "not in": any(r["category_id"] not in ids for r in results),
        }
        for key, expected in present.items():
            assert (key in text) == expected, f"seed {seed}: {key}: {text}"
            seen[key] += expected
    assert all(count > 3 for count in seen.values()), seen


def test_per_class(tmp_path: Path) -> None:
    for seed in range(40):
        annotations, results = lvis_case(seed, False)
        gt, dt = read_case(annotations, results, tmp_path)
        table = lvdet.evaluate(gt, dt, exact_lvis=True).per_class
        reference = evaluate_lvis_per_class(annotations, results, "bbox")
        assert table["id"].tolist() == sorted(reference)
        for category_id, value in zip(table["id"].tolist(), table["old.AP"], strict=True):
            expected = reference[category_id]
            assert np.isnan(value) if expected is None else abs(value - expected) <= TOLERANCE
