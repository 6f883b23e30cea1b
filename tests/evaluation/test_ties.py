"""The range of AP over all orders of equal scores."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import lvdet
from cli.run_lvdet import lvdet_call
from cli.small_set import save
from long_cases import first
from lvdet.evaluation.average_precision import RECALLS, Ties, accumulate
from lvdet.tables.outcomes import Outcomes
from oracles.cases import coco_case, lvis_case
from tabled import read_case
from thread_setting import threads

EXACT = 1e-12
Json = dict[str, Any]


def average_precision(ranked: Sequence[str], objects: int) -> float:
    """By the formula, of "right", "wrong" and "ignored" rows from the best to the worst."""
    right = np.cumsum([row == "right" for row in ranked])
    wrong = np.cumsum([row == "wrong" for row in ranked])
    total = 0.0
    for recall in RECALLS:
        reached = (right / objects >= recall) & (right > 0)
        total += (right / (right + wrong + np.spacing(1)))[reached].max(initial=0)
    return total / len(RECALLS)


def orders(score: NDArray[np.float64]) -> Iterator[list[int]]:
    """All orders of rows by descending score."""
    levels = [np.flatnonzero(score == level).tolist() for level in np.unique(score)[::-1]]
    for parts in itertools.product(*(itertools.permutations(level) for level in levels)):
        yield [row for part in parts for row in part]


def outcomes_of(kinds: NDArray[np.str_]) -> Outcomes:
    """Of [K, T] kinds; a row that is wrong everywhere, or ignored everywhere, is not a hit."""
    levels = kinds.shape[1]
    plain = (kinds == "wrong").all(axis=1) | (kinds == "ignored").all(axis=1)
    hits = np.flatnonzero(~plain).astype(np.int32)
    bits = np.zeros((len(hits), 1, 2, 1), dtype=np.uint8)
    for t in range(levels):
        bits[:, 0, 0, 0] |= (kinds[hits, t] == "right").astype(np.uint8) << t
        bits[:, 0, 1, 0] |= (kinds[hits, t] == "ignored").astype(np.uint8) << t
    return Outcomes((kinds == "wrong").all(axis=1).astype(np.uint8), hits, bits)


@pytest.mark.parametrize("seed", first(60, range(2000)))
def test_each_threshold_attains_its_bounds(seed: int) -> None:
    """All orders of rankings of seven rows, by the formula."""
    rng = np.random.default_rng(seed)
    rows, levels = int(rng.integers(1, 8)), 2
    score = -np.sort(-rng.integers(1, 4, rows) / 4.0)
    kinds = rng.choice(["right", "wrong", "ignored"], (rows, levels), p=[0.4, 0.45, 0.15])
    objects = max(int((kinds == "right").sum(axis=0).max()), 1) + int(rng.integers(0, 2))
    keep = None if seed % 3 else rng.random(rows) < 0.8
    outcomes = outcomes_of(kinds)
    offsets, truth = np.array([0, rows]), np.array([[objects]])
    ties = Ties.of(outcomes, offsets, None, np.arange(rows, dtype=np.int32), score)
    curves, _ = accumulate(outcomes, levels, truth, offsets, keep=keep, ties=ties)
    kept = np.ones(rows, dtype=bool) if keep is None else keep
    for t in range(levels):
        as_it_is = average_precision(kinds[kept, t].tolist(), objects)
        assert curves.precision[0, 0, t] == pytest.approx(as_it_is, rel=0, abs=EXACT)
        found = {
            average_precision([str(kinds[row, t]) for row in order if kept[row]], objects)
            for order in orders(score)
        }
        assert curves.lowest[0, t] == pytest.approx(min(found), rel=0, abs=EXACT)
        assert curves.highest[0, t] == pytest.approx(max(found), rel=0, abs=EXACT)


def assert_inside(result: lvdet.Evaluation, ranges: lvdet.Evaluation, what: str) -> None:
    for name, one in result.items():
        ties, value = ranges[name].ties, one["AP"]
        if np.isnan(value):
            assert np.isnan(ties.low)
            assert np.isnan(ties.high)
        else:
            assert ties.low - EXACT <= value <= ties.high + EXACT, (what, name, value, ties)


def renumbered(annotations: Json, results: list[Json], rng: random.Random) -> tuple[Json, Any]:
    """Other ids of images and classes: the order of equal scores in every ranking."""
    annotations, results = copy.deepcopy(annotations), copy.deepcopy(results)
    images = [image["id"] for image in annotations["images"]]
    classes = [category["id"] for category in annotations["categories"]]
    image = dict(zip(images, rng.sample(images, len(images)), strict=True))
    category = dict(zip(classes, rng.sample(classes, len(classes)), strict=True))
    for row in annotations["images"]:
        row["id"] = image[row["id"]]
        for name in ("neg_category_ids", "not_exhaustive_category_ids"):
            if name in row:
                row[name] = [category[one] for one in row[name]]
    for row in annotations["categories"]:
        row["id"] = category[row["id"]]
    for row in (*annotations["annotations"], *results):
        row["image_id"], row["category_id"] = image[row["image_id"]], category[row["category_id"]]
    return annotations, results


@pytest.mark.parametrize("seed", first(8, range(400)))
def test_the_range_contains_random_orders(seed: int, tmp_path: Path) -> None:
    """200 orders of the rows of a file full of ties, and 10 numberings of images and classes.
    What is matched depends on the order of rows too."""
    coco, rng = seed % 2 == 1, random.Random(seed)
    annotations, results = (coco_case if coco else lvis_case)(90_000 + seed, False, quirks=False)
    if not results:
        return
    for row in results:
        row["score"] = round(row["score"] * 3) / 3
    gt, dt = read_case(annotations, results, tmp_path)
    options: dict[str, Any] = {"exact_lvis": seed % 4 > 1}
    ranges = lvdet.evaluate(gt, dt, **options)
    assert_inside(ranges, ranges, "as it is")
    for number in range(200):
        order = np.array(rng.sample(range(len(dt)), len(dt)), dtype=np.int64)
        assert_inside(lvdet.evaluate(gt, dt[order], **options), ranges, f"order {number}")
    for number in range(10):
        other = read_case(*renumbered(annotations, results, rng), tmp_path)
        assert_inside(lvdet.evaluate(*other, **options), ranges, f"numbering {number}")


def one_per_image(right: Sequence[bool], ids: Sequence[int]) -> tuple[Json, list[Json]]:
    """Images of one object and one detection each, all of one score."""
    annotations: Json = {
        "images": [{"id": one, "height": 100, "width": 100} for one in ids],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [
            {
                "id": number,
                "image_id": one,
                "category_id": 1,
                "bbox": [10, 10, 20, 20],
                "area": 400,
                "iscrowd": 0,
            }
            for number, one in enumerate(ids, start=1)
        ],
    }
    results = [
        {
            "image_id": one,
            "category_id": 1,
            "bbox": [10, 10, 20, 20] if hit else [60, 60, 20, 20],
            "score": 1.0,
        }
        for one, hit in zip(ids, right, strict=True)
    ]
    return annotations, results


def test_files_attain_the_range(tmp_path: Path) -> None:
    """Images numbered so that the correct ones come first, or last."""
    right = [True, False, True, True, False, False, True]
    numbered = {
        "first": np.argsort(np.argsort(np.invert(right), kind="stable")) + 1,
        "last": np.argsort(np.argsort(right, kind="stable")) + 1,
    }
    found = {
        name: lvdet.evaluate(*read_case(*one_per_image(right, ids.tolist()), tmp_path))
        for name, ids in numbered.items()
    }
    mixed = lvdet.evaluate(*read_case(*one_per_image(right, range(1, 8)), tmp_path))
    for protocol in ("old", "fixed", "pool"):
        for one in (mixed, *found.values()):
            assert one[protocol].ties.low == found["last"][protocol].AP
            assert one[protocol].ties.high == found["first"][protocol].AP
        assert found["last"][protocol].AP < mixed[protocol].AP < found["first"][protocol].AP


def test_scores_without_ties_have_an_empty_range() -> None:
    gt, dt = lvdet.simulate(images=100, classes=50, dets_per_image=None, seed=3)
    score = np.random.default_rng(0).permutation(len(dt)) / len(dt)
    for options in ({}, {"dets_per_image": 20, "dets_per_class": 30}):
        result = lvdet.evaluate(gt, dt.with_scores(score), **options)
        for one in result.values():
            assert one.ties.low == one.AP == one.ties.high
        assert not any("equal scores" in text for text in result.warnings)


def test_the_number_of_threads_changes_no_range() -> None:
    gt, dt = lvdet.simulate(images=60, classes=20, objects_per_image=12, seed=3)
    dt = dt.with_scores(np.round(dt.score, 1))
    found = []
    for count in (1, 2, 4):
        with threads(count):
            found.append({name: one.ties for name, one in lvdet.evaluate(gt, dt).items()})
    assert found[0] == found[1] == found[2]
    assert found[0]["pool"].notable


def test_the_match_itself_may_depend_on_the_order(tmp_path: Path) -> None:
    """One box could be either object, the other only the first: taken last, it finds nothing."""
    annotations, _ = one_per_image([True], [1])
    annotations["annotations"] = [
        annotations["annotations"][0] | {"id": 1, "bbox": [0, 0, 20, 20]},
        annotations["annotations"][0] | {"id": 2, "bbox": [4, 0, 20, 20]},
    ]
    boxes = {"either": [1, 0, 20, 20], "first": [-4, 0, 20, 20]}
    results = [
        {"image_id": 1, "category_id": 1, "bbox": boxes[name], "score": 1.0}
        for name in ("either", "first")
    ]
    worse = lvdet.evaluate(*read_case(annotations, results, tmp_path), thresholds=[0.6])
    better = lvdet.evaluate(*read_case(annotations, results[::-1], tmp_path), thresholds=[0.6])
    assert worse["fixed"].AP < better["fixed"].AP == 1
    for one in (worse, better):
        assert one["fixed"].ties.low <= worse["fixed"].AP
        assert one["fixed"].ties.high == 1


def test_a_wide_range_is_a_warning(tmp_path: Path) -> None:
    right = [True, False, True, True, False, False, True]
    annotations, results = one_per_image(right, range(1, 8))
    gt, dt = save(tmp_path / "gt.json", annotations), save(tmp_path / "dt.json", results)
    done = lvdet_call("evaluate", gt, str(dt), "--protocols", "fixed").good()
    said = "AP-Fixed lies between 32.81 and 57.43 (7 detections share their score with another)"
    assert said in done.err
    protocols = lvdet.evaluate(gt, dt).to_dict()["protocols"]
    for one in protocols.values():
        assert one["tie_low"] < one["AP"] < one["tie_high"]
