"""COCOeval beside pycocotools': numbers, records, printed text."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.side_by_side import COCO_SIDES, Json, assert_same_records, indexed, printed
from oracles.cases import coco_case, without_boxes


def run(side: Any, dataset: Json, results: list[Json], iou: str, change: Any = None) -> Any:
    coco, evaluator = side
    truth = indexed(coco, dataset)
    if results:
        found = truth.loadRes(copy.deepcopy(results))
    else:
        found = indexed(coco, {**dataset, "annotations": []})
    evaluation = evaluator(truth, found, iou)
    if change is not None:
        change(evaluation.params)
    evaluation.evaluate()
    evaluation.accumulate()
    return evaluation


def compare(dataset: Json, results: list[Json], iou: str, change: Any = None) -> tuple[Any, Any]:
    (theirs, their_text), (ours, our_text) = (
        printed(run, side, dataset, results, iou, change) for side in COCO_SIDES
    )
    assert our_text == their_text
    for key in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(ours.eval[key], theirs.eval[key], err_msg=key)
    assert ours.eval["counts"] == theirs.eval["counts"]
    assert_same_records(ours.evalImgs, theirs.evalImgs)
    assert dict(vars(ours.params)).keys() == dict(vars(theirs.params)).keys()
    for key, value in vars(theirs.params).items():
        np.testing.assert_array_equal(vars(ours.params)[key], value, err_msg=key)
    return ours, theirs


@pytest.mark.parametrize("iou", ["bbox", "segm"])
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), plain=st.booleans())
def test_numbers_records_and_text_are_pycocotools_s(iou: str, seed: int, plain: bool) -> None:
    dataset, results = coco_case(seed, masks=iou == "segm")
    if plain and iou == "segm":
        results = without_boxes(results)
    ours, theirs = compare(dataset, results, iou)
    assert printed(ours.summarize)[1] == printed(theirs.summarize)[1]
    np.testing.assert_array_equal(ours.stats, theirs.stats)
    for key, value in theirs.ious.items():
        np.testing.assert_array_equal(ours.ious[key], value)


def few_images(params: Any) -> None:
    params.imgIds = params.imgIds[:2]


def some_classes(params: Any) -> None:
    params.catIds = params.catIds[::-2]


def one_class(params: Any) -> None:
    params.useCats = 0


def other_limits(params: Any) -> None:
    params.maxDets = [300, 1, 2]


def other_levels(params: Any) -> None:
    params.iouThrs = np.array([0.3, 0.5, 0.75, 1.0])
    params.recThrs = np.array([0.0, 0.1, 0.5, 0.333, 0.9, 1.0, 0.2])


def many_ranges(params: Any) -> None:
    params.areaRng = [[float(low), float(low * 10 + 500)] for low in range(0, 5000, 500)]
    params.areaRngLbl = ["all", "small", "medium", "large", *map(str, range(6))]


@pytest.mark.parametrize("iou", ["bbox", "segm"])
@pytest.mark.parametrize(
    "change", [few_images, some_classes, one_class, other_limits, other_levels, many_ranges]
)
def test_params_are_live(change: Any, iou: str) -> None:
    for seed in range(12):
        dataset, results = coco_case(seed, masks=iou == "segm")
        ours, theirs = compare(dataset, results, iou, change)
        assert printed(ours.summarize)[1] == printed(theirs.summarize)[1]
