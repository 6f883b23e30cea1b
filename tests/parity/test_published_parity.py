"""Fixed AP as evaluators in the field compute it: in batches, on several ranks, with padding.

The order in which detections arrive decides which of equal scores a cap keeps, and which is matched
first. lvdet gets the rows in that order.
"""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest

import lvdet
from long_cases import first
from oracles.cases import lvis_case, without_boxes
from oracles.lvis_reference import evaluate_lvis
from tabled import assert_agree, read_case

BATCH = 20
Json = dict[str, Any]


def dealt(images: list[int], ranks: int, *, padded: bool) -> list[list[int]]:
    """Every rank-th image to each rank; where padded, the first images again until all have as
    many: they come twice then, and count as incorrect detections."""
    if padded:
        short = -len(images) % ranks
        images = images + (images * ranks)[:short]
    return [images[rank::ranks] for rank in range(ranks)]


def ranked(rows: list[Json], top: int) -> list[Json]:
    """The best, those that came first among equals."""
    return sorted(rows, key=lambda row: row["score"], reverse=True)[:top]


def gathered(shares: list[list[int]], of_image: dict[int, list[Json]], size: int, top: int) -> Any:
    """The rows as they arrive, rank by rank; and what is evaluated: each rank keeps the best of
    each class batch by batch, then the best of all ranks' are kept, in order of the ranks."""
    arrived: list[Json] = []
    of_class: dict[int, list[Json]] = {}
    for share in shares:
        own: dict[int, list[Json]] = {}
        for start in range(0, len(share), size):
            batch = [row for image in share[start : start + size] for row in of_image[image]]
            arrived += batch
            for row in batch:
                own.setdefault(row["category_id"], []).append(row)
            own = {name: ranked(rows, top) for name, rows in own.items()}
        for name, rows in own.items():
            of_class.setdefault(name, []).extend(rows)
    return arrived, [row for rows in of_class.values() for row in ranked(rows, top)]


@pytest.mark.parametrize("batch", first(5, range(100)))
def test_fixed_ap_of_the_field(batch: int, tmp_path: Path) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        rng, masks = random.Random(f"published {seed}"), seed % 4 == 3
        annotations, results = lvis_case(120_000 + seed, masks)
        images = [image["id"] for image in annotations["images"]]
        rng.shuffle(images)
        of_image: dict[int, list[Json]] = {image: [] for image in images}
        for row in results:
            of_image[row["image_id"]].append(row)
        ranks, size = rng.choice([1, 2, 3, 8]), rng.choice([1, 2, 5])
        shares = dealt(images, ranks, padded=rng.random() < 0.5)
        top = rng.choice([2, 4, 10_000])
        arrived, evaluated = gathered(shares, of_image, size, top)
        iou = "segm" if masks else "bbox"
        what = f"seed {seed}, {ranks} ranks, {top} per class, {iou}"
        gt, dt = read_case(annotations, copy.deepcopy(arrived), tmp_path)
        options: dict[str, Any] = {"iou": iou, "protocols": ["fixed"], "dets_per_class": top}
        ours = lvdet.evaluate(gt, dt, exact_lvis=True, **options)["fixed"]
        assert_agree(ours, evaluate_lvis(annotations, evaluated, iou, -1), what)
        if masks and top == 10_000:  # evaluators that drop `bbox` first
            dropped = without_boxes(evaluated)
            ours = lvdet.evaluate(gt, dt, iou=iou, like="yoloe")["yoloe"]
            assert_agree(ours, evaluate_lvis(annotations, dropped, iou, -1), f"{what}, dropped")


@pytest.mark.parametrize("seed", range(20))
def test_the_default_has_the_area_of_evaluators_that_drop_boxes(seed: int, tmp_path: Path) -> None:
    annotations, results = lvis_case(130_000 + seed, True, quirks=False)
    gt, dt = read_case(annotations, results, tmp_path)
    ours = lvdet.evaluate(gt, dt, iou="segm", protocols=["fixed"])["fixed"]
    reference = evaluate_lvis(annotations, without_boxes(results), "segm", -1)
    assert_agree(ours, reference, f"seed {seed}")
