"""What holds for the errors of any files."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from diagnosis.error_sets import Json, kinds_by_row, numbers, same, targets_by_row
from lvdet.diagnosis.kinds import KINDS, RIGHT, ROW_KINDS
from lvdet.limits.budgets import apply
from lvdet.matching.match import match
from lvdet.matching.match_options import MatchOptions
from oracles.boundary_reference import boundary_ious
from oracles.cases import coco_case, lvis_case, rename_classes
from oracles.error_cases import error_case
from oracles.pool_reference import rle_of
from tabled import TOLERANCE, read_case
from thread_setting import on_threads

seeds = st.integers(0, 100_000)
IOUS = ("bbox", "segm", "boundary")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("errors")


def any_case(seed: int, iou: str, coco: bool) -> tuple[Json, list[Json]]:
    """Files full of ties and oddities."""
    return (coco_case if coco else lvis_case)(seed, iou != "bbox", quirks=False)


@given(seed=seeds, iou=st.sampled_from(IOUS), coco=st.booleans(), limit=st.integers(1, 12))
def test_every_wrong_detection_has_one_kind(
    seed: int, iou: str, coco: bool, limit: int, folder: Path
) -> None:
    gt, dt = read_case(*any_case(seed, iou, coco), folder)
    diagnosis = lvdet.diagnose(gt, dt, iou=iou, dets_per_class=limit)
    matches = match(gt, dt, MatchOptions(iou, [0.5]))
    keep = apply([lvdet.PerClass(limit)], dt)
    kept = np.ones(len(matches), dtype=bool) if keep is None else keep[matches.detection]
    matched, ignored = matches.flags(0)
    kind = diagnosis.rows.kind
    assert np.array_equal(kind < len(KINDS), kept & ~matched & ~ignored)
    assert np.array_equal(kind == RIGHT, kept & matched & ~ignored)
    assert not (kind == KINDS.index("missed")).any()
    counts = diagnosis.class_counts
    of_class = np.bincount(matches.category[kind < len(KINDS)], minlength=len(gt.categories))
    assert np.array_equal(counts[:, :5].sum(axis=1), of_class)
    assert np.array_equal(counts[:, 6], of_class)
    assert (counts[:, 5] <= counts[:, 7]).all()
    right = np.bincount(matches.category[kind == RIGHT], minlength=len(gt.categories))
    assert np.array_equal(diagnosis.instances - counts[:, 7], right)
    assert np.array_equal(diagnosis.instances, matches.truth[:, 0])
    for place, name in enumerate(diagnosis.kinds):
        assert diagnosis.counts[name]["all"] == counts[:, place].sum()
    if not coco:
        for name in diagnosis.kinds:
            parts = diagnosis.counts[name]
            assert sum(parts[group] for group in "rcf") == parts["all"]
    assert diagnosis.confusions.count.sum() == counts[:, 0].sum()


@given(seed=seeds, iou=st.sampled_from(IOUS), coco=st.booleans(), limit=st.integers(1, 12))
def test_ap_before_is_what_evaluate_says(
    seed: int, iou: str, coco: bool, limit: int, folder: Path
) -> None:
    gt, dt = read_case(*any_case(seed, iou, coco), folder)
    diagnosis = lvdet.diagnose(gt, dt, iou=iou, dets_per_class=limit)
    fixed = lvdet.evaluate(gt, dt, iou=iou, dets_per_class=limit, thresholds=[0.5])["fixed"]
    assert same(diagnosis.ap["all"], fixed.AP)
    for group in gt.categories.groups():
        assert same(diagnosis.ap[group], fixed[f"AP{group}"])


@given(seed=seeds, iou=st.sampled_from(IOUS), coco=st.booleans(), limit=st.integers(1, 12))
def test_no_repair_lowers_ap(seed: int, iou: str, coco: bool, limit: int, folder: Path) -> None:
    """A wrong detection taken away or turned right, a right one put in, an object less that was
    not found: none of these lowers precision at any recall. A class that leaves the mean had 0."""
    gt, dt = read_case(*any_case(seed, iou, coco), folder)
    diagnosis = lvdet.diagnose(gt, dt, iou=iou, dets_per_class=limit)
    defined = ~np.isnan(diagnosis.class_costs)
    assert (diagnosis.class_costs[defined] >= 0).all()
    gone = ~defined & ~np.isnan(diagnosis.class_ap)[:, None]
    assert not gone[:, [0, 1, 2, 3, 4, 6]].any()
    assert (diagnosis.class_ap[gone.any(axis=1)] == 0).all()
    for cost in diagnosis.costs.values():
        assert not any(value < -TOLERANCE for value in cost.values())
    # All wrong ones taken away is no less than those of one kind taken away.
    for name in ("both", "duplicate", "background"):
        assert not diagnosis.costs["false positives"]["all"] < diagnosis.costs[name]["all"]
    mended = diagnosis.class_ap[:, None] + diagnosis.class_costs
    assert not (mended > 1 + TOLERANCE).any()


@given(seed=seeds, federated=st.booleans())
def test_a_perfect_detector_has_no_errors(seed: int, federated: bool, folder: Path) -> None:
    annotations, _ = error_case(seed, federated=federated)
    results = [
        {name: row[name] for name in ("image_id", "category_id", "bbox")} | {"score": 0.5}
        for row in annotations["annotations"]
    ]
    if not results:
        return
    diagnosis = lvdet.diagnose(*read_case(annotations, results, folder))
    assert all(set(counts.values()) == {0} for counts in diagnosis.counts.values())
    assert diagnosis.ap["all"] == pytest.approx(1)
    assert len(diagnosis.confusions) == len(diagnosis.missed) == 0
    assert len(diagnosis.layouts()) == 1
    for cost in diagnosis.costs.values():
        assert all(value == 0 or math.isnan(value) for value in cost.values())


@given(seed=seeds, federated=st.booleans(), masks=st.booleans())
def test_order_of_everything_in_the_files(
    seed: int, federated: bool, masks: bool, folder: Path
) -> None:
    annotations, results = error_case(seed, federated=federated, masks=masks)
    gt, dt = read_case(annotations, results, folder)
    first = lvdet.diagnose(gt, dt)
    kinds = kinds_by_row(first, len(results))
    targets = targets_by_row(first, gt, "classification", "localisation", "duplicate", "right")
    rng = random.Random(seed)
    for rows in annotations.values():
        rng.shuffle(rows)
    order = rng.sample(range(len(results)), len(results))
    gt, dt = read_case(annotations, [results[row] for row in order], folder)
    second = lvdet.diagnose(gt, dt)
    assert numbers(first) == numbers(second)
    assert kinds_by_row(second, len(results)) == [kinds[row] for row in order]
    assert {
        order[row]: target
        for row, target in targets_by_row(
            second, gt, "classification", "localisation", "duplicate", "right"
        ).items()
    } == targets


@given(seed=seeds)
def test_renaming_classes_renames_errors(seed: int, folder: Path) -> None:
    annotations, results = error_case(seed, federated=True)
    first = lvdet.diagnose(*read_case(annotations, results, folder))
    renamed = rename_classes(annotations, results, seed)
    second = lvdet.diagnose(*read_case(annotations, results, folder))
    # The mean over classes is taken in another order.
    for name in first.kinds:
        assert first.counts[name] == second.counts[name]
        for group, cost in first.costs[name].items():
            assert same(cost, second.costs[name][group])
    place = {number: row for row, number in enumerate(second.categories.ids.tolist())}
    order = [place[renamed[number]] for number in first.categories.ids.tolist()]
    assert np.array_equal(first.class_counts, second.class_counts[order])
    assert np.array_equal(first.class_costs, second.class_costs[order], equal_nan=True)


@given(seed=seeds, iou=st.sampled_from(IOUS), coco=st.booleans())
def test_thread_count_changes_no_byte(seed: int, iou: str, coco: bool, folder: Path) -> None:
    gt, dt = read_case(*any_case(seed, iou, coco), folder)
    one, *others = on_threads(lambda: lvdet.diagnose(gt, dt, iou=iou), 1, 2, 3)
    for other in others:
        assert numbers(one) == numbers(other)
        for name in ("detection", "kind", "target", "overlap"):
            mine, theirs = getattr(one.rows, name), getattr(other.rows, name)
            assert mine.tobytes() == theirs.tobytes()


@given(seed=seeds)
def test_detections_of_unverified_classes_change_nothing(seed: int, folder: Path) -> None:
    """Within the budget, which counts them."""
    annotations, results = error_case(seed, federated=True)
    first = lvdet.diagnose(*read_case(annotations, results, folder))
    rng = random.Random(seed)
    there = {(row["image_id"], row["category_id"]) for row in annotations["annotations"]}
    more = [
        {
            "image_id": image["id"],
            "category_id": category["id"],
            "bbox": rng.choice(results)["bbox"],
            "score": rng.random(),
        }
        for image in annotations["images"]
        for category in annotations["categories"]
        if category["id"] not in image["neg_category_ids"]
        and (image["id"], category["id"]) not in there
    ]
    second = lvdet.diagnose(*read_case(annotations, [*results, *more], folder))
    assert numbers(first) == numbers(second)


@given(seed=seeds, limit=st.integers(1, 6))
def test_a_budget_is_a_cut_beforehand(seed: int, limit: int, folder: Path) -> None:
    annotations, results = error_case(seed, federated=True)
    gt, dt = read_case(annotations, results, folder)
    keep = apply([lvdet.PerClass(limit)], dt)
    cut = lvdet.diagnose(gt, dt if keep is None else dt[keep], dets_per_class=limit)
    whole = lvdet.diagnose(gt, dt, dets_per_class=limit)
    assert numbers(cut) == numbers(whole)
    read = lvdet.diagnose(folder / "gt.json", folder / "dt.json", dets_per_class=limit)
    assert numbers(read) == numbers(whole)


@given(seed=seeds, iou=st.sampled_from(["segm", "boundary"]), coco=st.booleans())
@settings(max_examples=40)
def test_overlaps_of_masks(seed: int, iou: str, coco: bool, folder: Path) -> None:
    """The nearest object of a wrong detection has the overlap that pycocotools gives, and, for
    boundaries, faster-coco-eval."""
    annotations, results = any_case(seed, iou, coco)
    gt, dt = read_case(annotations, results, folder)
    rows = lvdet.diagnose(gt, dt, iou=iou).rows
    images = {image["id"]: image for image in annotations["images"]}
    ours = dict(
        zip(rows.detection.tolist(), zip(rows.kind, rows.overlap, strict=True), strict=True)
    )
    for row, (kind, overlap) in ours.items():
        if kind >= len(KINDS):
            continue
        there = [
            one
            for one in annotations["annotations"]
            if one["image_id"] == results[row]["image_id"]
            and not one.get("iscrowd" if coco else "ignore")
        ]
        image = images[results[row]["image_id"]]
        shapes = [rle_of(one["segmentation"], image) for one in there]
        mine = [rle_of(results[row]["segmentation"], image)]
        plain = [0] * len(shapes)
        table = (
            coco_mask.iou(mine, shapes, plain)
            if iou == "segm"
            else boundary_ious(mine, shapes, plain)
        )
        values = np.asarray(table).reshape(-1)
        own = np.array([one["category_id"] == results[row]["category_id"] for one in there], bool)
        same_class = values[own].max(initial=0)
        other_class = values[~own].max(initial=0)
        expected = {
            "localisation": same_class,
            "duplicate": same_class,
            "classification": other_class,
        }.get(ROW_KINDS[kind], max(same_class, other_class))
        assert overlap == expected, (row, ROW_KINDS[kind])


def test_no_detections(folder: Path) -> None:
    annotations, _ = error_case(2, federated=False)
    diagnosis = lvdet.diagnose(*read_case(annotations, [], folder))
    objects = len(annotations["annotations"])
    assert diagnosis.counts["missed"]["all"] == objects > 0
    assert diagnosis.ap["all"] == 0
    assert len(diagnosis.rows) == 0
    assert json.loads(json.dumps(diagnosis.to_dict()))["warnings"] != []
