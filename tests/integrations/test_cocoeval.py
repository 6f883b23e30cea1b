"""COCOeval beside pycocotools': numbers, records, printed text."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.side_by_side import COCO_SIDES, Json, assert_same_records, indexed, printed
from lvdet.errors import LvdetError
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


def negative_sides(dataset: Json, results: list[Json]) -> Any:
    for one in results[::2]:
        one["bbox"][2] *= -1


def repeated_ids(dataset: Json, results: list[Json]) -> Any:
    for one in dataset["annotations"][::2]:
        one["id"] = 1


def negative_ids(dataset: Json, results: list[Json]) -> Any:
    for one in dataset["annotations"]:
        one["id"] *= -1


def nothing_annotated(dataset: Json, results: list[Json]) -> Any:
    dataset["annotations"].clear()


def single_precision(dataset: Json, results: list[Json]) -> Any:
    for one in results:
        one["score"] = np.float32(one["score"])
        one["bbox"] = [np.float32(value) for value in one["bbox"]]


def unknown_ids(dataset: Json, results: list[Json]) -> Any:
    def change(params: Any) -> None:
        params.imgIds = [*params.imgIds, 99_999, *params.imgIds]
        params.catIds = [*params.catIds, 12_345, *params.catIds]

    return change


def nothing_asked(dataset: Json, results: list[Json]) -> Any:
    def change(params: Any) -> None:
        params.imgIds, params.maxDets = [], [0, 1, 1]

    return change


def many_levels(dataset: Json, results: list[Json]) -> Any:
    def change(params: Any) -> None:
        params.iouThrs = np.linspace(0.01, 1, 80)

    return change


@pytest.mark.parametrize(
    "spoil",
    [
        negative_sides,
        repeated_ids,
        negative_ids,
        nothing_annotated,
        single_precision,
        unknown_ids,
        nothing_asked,
        many_levels,
    ],
)
def test_odd_input_gives_pycocotools_s_numbers(spoil: Any) -> None:
    for seed in range(8):
        dataset, results = coco_case(seed, masks=False)
        compare(dataset, results, "bbox", spoil(dataset, results))


def test_missing_images_are_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, _ = coco_case(3, masks=False)
    for one in dataset["images"]:
        one |= {"file_name": f"{one['id']}.jpg", "coco_url": f"http://host/{one['id']}"}
    ours, _ = printed(indexed, COCO_SIDES[1][0], dataset)
    asked: list[tuple[str, Path]] = []
    module = "lvdet.integrations.pycocotools.coco.urlretrieve"
    monkeypatch.setattr(module, lambda url, place: asked.append((url, place)))
    assert printed(ours.download) == (-1, "Please specify target directory\n")
    ids = ours.getImgIds()
    (tmp_path / f"{ids[0]}.jpg").touch()
    returned, text = printed(ours.download, str(tmp_path))
    assert returned is None
    assert asked == [(f"http://host/{one}", tmp_path / f"{one}.jpg") for one in ids[1:]]
    assert text.count("downloaded") == len(ids)
    asked.clear()
    printed(ours.download, str(tmp_path), ids[1:2])
    assert [url for url, _ in asked] == [f"http://host/{ids[1]}"]


def test_captions_keep_the_images_that_have_one() -> None:
    """As pycocotools, which matches captions with nothing."""
    dataset, _ = coco_case(3, masks=False)
    chosen = dataset["images"][0]["id"]
    captions = [{"image_id": chosen, "caption": "a cat"}]
    found = [
        printed(lambda side: indexed(side[0], dataset).loadRes(copy.deepcopy(captions)), side)[0]
        for side in COCO_SIDES
    ]
    assert [one["id"] for one in found[1].dataset["images"]] == [chosen]
    for key in ("images", "annotations"):
        assert found[1].dataset[key] == found[0].dataset[key]


def test_what_lvdet_refuses(tmp_path: Path) -> None:
    coco, evaluator = COCO_SIDES[1]
    dataset, results = coco_case(3, masks=False)
    truth, _ = printed(indexed, coco, dataset)
    path = tmp_path / "list.json"
    path.write_text("[]")
    for call, says in (
        (lambda: coco(path), "not an annotation file: expected a JSON object"),
        (lambda: truth.loadRes({}), "results are a dict, expected a list of dicts"),
        (lambda: evaluator(truth, truth, "keypoints").evaluate(), "keypoints are not evaluated"),
        (lambda: evaluator(truth, truth, "cubes").evaluate(), "iouType"),
    ):
        with pytest.raises((LvdetError, ValueError), match=says):
            printed(call)
    evaluation, _ = printed(lambda: evaluator(truth, truth.loadRes(results), "bbox"))
    printed(evaluation.evaluate)
    evaluation.params.iouThrs = evaluation.params.iouThrs[:3]
    with pytest.raises(LvdetError, match="iouThrs have changed since"):
        printed(evaluation.accumulate)


@pytest.mark.parametrize("flag", [0, 1])
def test_the_older_flag_says_what_is_compared(flag: int) -> None:
    """`useSegm` of pycocotools before `iouType`."""
    dataset, results = coco_case(5, masks=True)

    def script(side: Any) -> Any:
        truth = indexed(side[0], dataset)
        evaluation = side[1](truth, truth.loadRes(copy.deepcopy(results)), "bbox")
        evaluation.params.useSegm = flag
        evaluation.evaluate()
        evaluation.accumulate()
        return evaluation

    (theirs, _), (ours, _) = (printed(script, side) for side in COCO_SIDES)
    assert ours.params.iouType == theirs.params.iouType == ("bbox", "segm")[flag]
    np.testing.assert_array_equal(ours.eval["precision"], theirs.eval["precision"])
