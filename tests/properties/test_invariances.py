"""What must not change a number, and what may change it only one way."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from lvdet.evaluation.average_precision import class_curves
from lvdet.matching.match import match
from lvdet.matching.match_options import MatchOptions
from match_bytes import match_bytes
from oracles.cases import coco_case, lvis_case, rename_classes
from tabled import read_case
from thread_setting import on_threads

seeds = st.integers(0, 100_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cases")


def numbers(result: lvdet.Evaluation) -> str:
    return json.dumps(result.to_dict()["protocols"])


@given(seed=seeds, masks=st.booleans(), coco=st.booleans())
def test_thread_count_changes_no_byte(seed: int, masks: bool, coco: bool, folder: Path) -> None:
    gt, dt = read_case(*(coco_case if coco else lvis_case)(seed, masks), folder)
    iou = "segm" if masks else "bbox"
    one, *others = on_threads(lambda: match(gt, dt, MatchOptions(iou)), 1, 2, 3)
    for other in others:
        assert match_bytes(one) == match_bytes(other)
    if coco:
        first, second = on_threads(
            lambda: numbers(lvdet.evaluate(gt, dt, iou=iou, exact_lvis=True)), 1, 2
        )
        assert first == second


@given(seed=seeds, masks=st.booleans())
def test_order_of_images_and_classes_in_the_file(seed: int, masks: bool, folder: Path) -> None:
    annotations, results = lvis_case(seed, masks)
    first = lvdet.evaluate(*read_case(annotations, results, folder), exact_lvis=True)
    rng = random.Random(seed)
    for name in ("images", "categories"):
        rng.shuffle(annotations[name])
    second = lvdet.evaluate(*read_case(annotations, results, folder), exact_lvis=True)
    assert numbers(first) == numbers(second)


@given(seed=seeds)
def test_renaming_classes_permutes_their_numbers(seed: int, folder: Path) -> None:
    annotations, results = lvis_case(seed, False, quirks=False)
    before = lvdet.evaluate(*read_case(annotations, results, folder)).per_class
    renamed = rename_classes(annotations, results, seed)
    after = lvdet.evaluate(*read_case(annotations, results, folder)).per_class
    values = dict(zip(after["id"].tolist(), after["fixed.AP"].tolist(), strict=True))
    for category_id, value in zip(before["id"].tolist(), before["fixed.AP"], strict=True):
        assert np.array_equal(value, values[renamed[category_id]], equal_nan=True)


@given(seed=seeds, masks=st.booleans())
def test_one_rising_map_of_all_scores_changes_nothing(seed: int, masks: bool, folder: Path) -> None:
    gt, dt = read_case(*lvis_case(seed, masks), folder)
    iou = "segm" if masks else "bbox"
    first = lvdet.evaluate(gt, dt, iou=iou, dets_per_image=5, dets_per_class=4, exact_lvis=True)
    # Doubling and shifting by powers of two is exact, so ties stay ties.
    moved = dt.with_scores(dt.score * 4 - 2)
    second = lvdet.evaluate(gt, moved, iou=iou, dets_per_image=5, dets_per_class=4, exact_lvis=True)
    assert numbers(first) == numbers(second)


@given(seed=seeds)
def test_a_rising_map_for_each_class_leaves_ap_fixed(seed: int, folder: Path) -> None:
    gt, dt = read_case(*lvis_case(seed, False), folder)
    scale = np.ldexp(1.0, np.random.default_rng(seed).integers(-8, 8, len(dt.category_ids)))
    moved = dt.with_scores(dt.score * scale[dt.category])
    first = lvdet.evaluate(gt, dt, dets_per_class=4, exact_lvis=True)["fixed"]
    second = lvdet.evaluate(gt, moved, dets_per_class=4, exact_lvis=True)["fixed"]
    assert json.dumps(first.to_dict()) == json.dumps(second.to_dict())


@given(seed=seeds, masks=st.booleans())
def test_a_lowest_scored_detection_never_lowers_a_class(
    seed: int, masks: bool, folder: Path
) -> None:
    annotations, results = lvis_case(seed, masks)
    gt, dt = read_case(annotations, results, folder)
    iou = "segm" if masks else "bbox"
    extra = dict(random.Random(seed).choice(results)) | {"score": -1.0}
    _, more = read_case(annotations, [*results, extra], folder)
    before = class_curves(match(gt, dt, MatchOptions(iou)))
    after = class_curves(match(gt, more, MatchOptions(iou)))
    defined = ~np.isnan(before.precision)
    assert (after.precision[defined] >= before.precision[defined]).all()
    assert (after.recall[defined] >= before.recall[defined]).all()


@given(seed=seeds, masks=st.booleans())
def test_ground_truth_itself_is_perfect(seed: int, masks: bool, folder: Path) -> None:
    annotations, _ = lvis_case(seed, masks, quirks=False)
    kept = [a for a in annotations["annotations"] if not a.get("ignore") and a["area"] > 0]
    # One object a class and image: two of the same place could take each other's partner.
    one_each = {(a["image_id"], a["category_id"]): a for a in kept}
    annotations["annotations"] = list(one_each.values())
    results = [
        {
            "image_id": a["image_id"],
            "category_id": a["category_id"],
            "score": 0.5,
            "bbox": a["bbox"],
        }
        | ({"segmentation": a["segmentation"]} if masks else {})
        for a in one_each.values()
        if a["bbox"][2] > 0 and a["bbox"][3] > 0
    ]
    if not results or len(results) < len(one_each):
        return
    gt, dt = read_case(annotations, results, folder)
    if masks:
        areas = gt.masks is not None and match(gt, dt, MatchOptions("segm")).flags(0)[0]
        if not np.all(areas):
            return  # a mask without a pixel finds nothing
    result = lvdet.evaluate(gt, dt, iou="segm" if masks else "bbox")
    for name in ("old", "fixed", "pool"):
        assert pytest.approx(1.0, abs=1e-9) == result[name].AP


@given(seed=seeds, parts=st.integers(1, 4), ending=st.sampled_from(["json", "jsonl", "parquet"]))
def test_shards_are_the_whole(seed: int, parts: int, ending: str, folder: Path) -> None:
    gt, dt = read_case(*lvis_case(seed, False), folder)
    shards = folder / "shards"
    shards.mkdir(exist_ok=True)
    for old in shards.iterdir():
        old.unlink()
    cuts = np.linspace(0, len(dt), parts + 1).astype(int)
    for number, (begin, end) in enumerate(itertools.pairwise(cuts)):
        lvdet.write_detections(dt[begin:end], shards / f"part-{number}.{ending}")
    whole = lvdet.evaluate(gt, dt, exact_lvis=True)
    split = lvdet.evaluate(gt, lvdet.read_detections(shards), exact_lvis=True)
    assert numbers(whole) == numbers(split)
