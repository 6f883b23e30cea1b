"""Warnings on truncated or empty files, and the numbers that they name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import lvdet
from lvdet.limits.budgets import PerClass, PerImage, apply
from tabled import Tables


@pytest.fixture(scope="module")
def uncut() -> Tables:
    return lvdet.simulate(images=60, classes=150, dets_per_image=None, seed=1)


def test_ap_fixed_and_ap_pool_of_a_cut_file_are_incomplete(truncated: Tables) -> None:
    text = " ".join(lvdet.evaluate(*truncated).warnings)
    assert "is truncated at 300 detections per image" in text
    assert "(30 of 30 images have exactly 300)" in text
    assert "AP-Fixed and AP-Pool miss the dropped detections and are usually too low" in text
    assert not lvdet.evaluate(*truncated, protocols=["old"]).warnings


def test_ap_old_above_the_cut_is_incomplete_too(truncated: Tables) -> None:
    text = " ".join(lvdet.evaluate(*truncated, protocols="old", dets_per_image=1000).warnings)
    assert "AP-Old misses the dropped detections and is usually too low" in text


def test_some_classes_of_a_cut_file_are_incomplete_too(truncated: Tables) -> None:
    """The cut counted all classes: of these alone it might have left more."""
    text = " ".join(lvdet.evaluate(*truncated, protocols="old", classes="rc").warnings)
    assert "AP-Old misses the dropped detections" in text


@pytest.mark.parametrize(
    ("images", "says"),
    [
        (1, "appears truncated at 300 detections per image (1 of 8 images"),
        (4, "appears truncated at 300 detections per image (4 of 8 images"),
        (5, "is truncated at 300 detections per image (5 of 8 images have exactly"),
    ],
)
def test_few_images_are_little_evidence(images: int, says: str) -> None:
    gt, dt = lvdet.simulate(images=8, classes=400, dets_per_image=300, seed=1)
    rows = (dt.image < images) | (apply([PerImage(200)], dt) & (dt.image >= images))
    (text,) = lvdet.evaluate(gt, dt[rows]).warnings
    assert says in text
    assert "1 images" not in text
    assert ("has exactly 300" in text) == (images == 1)


# Cut by class


def cut_by_class(uncut: Tables, limit: int = 60) -> Tables:
    gt, dt = uncut
    return gt, dt[apply([PerClass(limit)], dt)]


def test_ap_old_of_a_file_cut_by_class_is_that_of_reranked_results(uncut: Tables) -> None:
    gt, dt = cut_by_class(uncut)
    (text,) = lvdet.evaluate(gt, dt, dets_per_class=60).warnings
    assert "is truncated at 60 detections per class" in text
    assert "classes have exactly 60" in text
    assert "AP-Old is computed from results already re-ranked with a class cap of 60" in text
    assert "AP-Fixed" not in text
    (text,) = lvdet.evaluate(gt, dt).warnings
    assert (
        "re-ranked with a class cap of 60; AP-Fixed and AP-Pool miss the dropped detections" in text
    )
    assert not lvdet.evaluate(gt, dt, protocols=["fixed", "pool"], dets_per_class=60).warnings
    # And so it is: the same as the paper's "Ranking 2" of the whole file.
    again = lvdet.rerank(*uncut, dets_per_class=60).after["old"]["AP"]
    assert again == lvdet.evaluate(gt, dt)["old"].AP


def test_classes_that_the_cut_did_not_touch_are_what_they_were(uncut: Tables) -> None:
    gt, dt = cut_by_class(uncut)
    small = [
        int(value)
        for place, value in enumerate(dt.category_ids)
        if (dt.category == place).sum() < 60
    ]
    assert not lvdet.evaluate(gt, dt, classes=small).warnings
    whole = lvdet.evaluate(*uncut, classes=small)
    assert lvdet.evaluate(gt, dt, classes=small)["old"].AP == whole["old"].AP


def test_a_cut_by_class_below_what_ap_old_looks_at() -> None:
    """No warning up to the limit at which every image is known to have lost nothing."""
    gt, dt = lvdet.simulate(images=60, classes=5, dets_per_image=200, seed=3)
    small = dt[apply([PerClass(1000)], dt)]
    cut_classes = [place for place in range(5) if (small.category == place).sum() == 1000]
    lowest = max(small.score[small.category == place].min() for place in cut_classes)
    sure = min(int((small.score[small.image == place] > lowest).sum()) for place in range(60))
    assert 0 < sure < 200
    for limit, warned in ((sure, False), (sure + 1, True)):
        result = lvdet.evaluate(gt, small, protocols=["old"], dets_per_image=limit)
        assert any("re-ranked" in text for text in result.warnings) == warned
    whole, cut = (lvdet.evaluate(gt, d, dets_per_image=sure)["old"].AP for d in (dt, small))
    assert whole == cut


def test_a_sweep_of_a_file_cut_by_class(uncut: Tables) -> None:
    gt, dt = cut_by_class(uncut)
    result = lvdet.sweep(
        gt, dt, dets_per_image=[300, None], dets_per_class=[60, 61, None], order="both"
    )
    for row in result.rows:
        image_first = row.dets_per_image and (
            row.dets_per_class is None or row.order == "image-first"
        )
        assert row.reranked == bool(image_first), row
        assert row.incomplete == (not image_first and row.dets_per_class != 60), row
    (text,) = result.warnings
    assert "3 of 8 rows are computed from results already re-ranked with a class cap of 60" in text
    assert "; 3 of 8 rows miss" in text
    assert "re-ranked" in str(result)
    assert "incomplete" in str(result)


def test_reranking_a_file_cut_by_class(uncut: Tables) -> None:
    gt, dt = cut_by_class(uncut)
    (text,) = lvdet.rerank(gt, dt, dets_per_class=30).warnings
    assert (
        "AP-Old before re-ranking is computed from results already re-ranked with a class cap of 60"
        in text
    )
    assert "; AP-Fixed misses the dropped detections" in text
    text = " ".join(lvdet.rerank(gt, dt, dets_per_class=90).warnings)
    assert "AP-Old after re-ranking and AP-Fixed miss" in text
    assert "No class has more than 60 detections" in text


def test_reranking_a_file_cut_by_image(truncated: Tables) -> None:
    (text,) = lvdet.rerank(*truncated, dets_per_class=30).warnings
    assert "AP-Old after re-ranking and AP-Fixed miss the dropped detections" in text


def test_coco_s_own_limit_misses_what_was_cut_below_it() -> None:
    gt, dt = lvdet.simulate(images=30, classes=40, dets_per_image=99, style="coco", seed=1)
    (text,) = lvdet.evaluate(gt, dt, protocols="old").warnings
    assert "is truncated at 99" in text
    assert "AP-Old misses the dropped detections" in text
    gt, dt = lvdet.simulate(images=30, classes=40, dets_per_image=100, style="coco", seed=1)
    assert not lvdet.evaluate(gt, dt, protocols="old").warnings


# Nothing there


@pytest.mark.parametrize("verb", [lvdet.evaluate, lvdet.sweep, lvdet.rerank, lvdet.audit])
def test_an_empty_file_is_said(verb: Callable[..., Any], uncut: Tables) -> None:
    gt, dt = uncut
    (text,) = verb(gt, dt[:0]).warnings
    assert text == "simulated detections has no detections, so its AP is meaningless."


# Boxes and masks


def test_areas_of_results_with_boxes_and_masks_are_named() -> None:
    """lvis takes those of the boxes, which --exact-lvis repeats."""
    gt, dt = lvdet.simulate(images=20, classes=10, dets_per_image=30, masks=True, seed=1)
    said = "has boxes and masks: a detection's area is its mask's"
    assert any(said in text for text in lvdet.evaluate(gt, dt).warnings)
    for options in ({"iou": "bbox"}, {"exact_lvis": True}):
        assert not any(said in text for text in lvdet.evaluate(gt, dt, **options).warnings)
    bare = replace(dt, boxes_given=False)
    assert not any(said in text for text in lvdet.evaluate(gt, bare).warnings)
