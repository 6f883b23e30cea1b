"""LVISEval beside lvis': numbers, records, printed text."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.side_by_side import LVIS_SIDES, Json, assert_same_records, printed
from lvdet.errors import InputError, LvdetError
from oracles.cases import lvis_case, without_boxes


def run(side: Any, path: Path, results: list[Json], iou: str, max_dets: int) -> Any:
    lvis, lvis_results, evaluator = side
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lvis calls Logger.warn
        truth = lvis(str(path))
        found = lvis_results(truth, copy.deepcopy(results), max_dets=max_dets)
        evaluation = evaluator(truth, found, iou)
        evaluation.params.max_dets = max_dets
        evaluation.run()
        evaluation.print_results()
    return evaluation


@pytest.mark.parametrize("iou", ["bbox", "segm"])
@given(
    seed=st.integers(0, 10**6),
    plain=st.booleans(),
    max_dets=st.sampled_from([300, 4, -1]),
)
def test_numbers_records_and_text_are_lvis_s(
    tmp_path_factory: Any, iou: str, seed: int, plain: bool, max_dets: int
) -> None:
    dataset, results = lvis_case(seed, masks=iou == "segm")
    if plain and iou == "segm":
        results = without_boxes(results)
    path = tmp_path_factory.getbasetemp() / "annotations.json"
    path.write_text(json.dumps(dataset))
    (theirs, their_text), (ours, our_text) = (
        printed(run, side, path, results, iou, max_dets) for side in LVIS_SIDES
    )
    assert our_text == their_text
    assert list(ours.results.items()) == list(theirs.results.items())
    assert ours.eval.keys() == theirs.eval.keys()
    for key in ("precision", "recall", "counts"):
        np.testing.assert_array_equal(ours.eval[key], theirs.eval[key], err_msg=key)
    assert_same_records(ours.eval_imgs, theirs.eval_imgs)
    for key, value in theirs.ious.items():
        np.testing.assert_array_equal(ours.ious[key], value)
    for place, areas in theirs.eval["dt_pointers"].items():
        for area, pointer in areas.items():
            mine = ours.eval["dt_pointers"][place][area]
            assert mine.keys() == pointer.keys()
            for key, value in pointer.items():
                np.testing.assert_array_equal(mine[key], value)


def files(tmp_path: Path) -> tuple[Path, list[Json]]:
    dataset, results = lvis_case(4, masks=True)
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(dataset))
    return path, results


@pytest.mark.filterwarnings("ignore:__array__ implementation")
def test_methods_of_annotations_are_lvis_s(tmp_path: Path) -> None:
    path, _ = files(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (side[0](str(path)) for side in LVIS_SIDES)
    images, classes = theirs.get_img_ids(), theirs.get_cat_ids()
    assert (ours.get_img_ids(), ours.get_cat_ids()) == (images, classes)
    for arguments in (
        {},
        {"img_ids": images[:2]},
        {"img_ids": images, "cat_ids": classes[1:3]},
        {"img_ids": images[1:], "cat_ids": classes[:2], "area_rng": [20, 900]},
    ):
        assert ours.get_ann_ids(**arguments) == theirs.get_ann_ids(**arguments), arguments
    ids = theirs.get_ann_ids()
    assert ours.load_anns(ids[:3]) == theirs.load_anns(ids[:3])
    assert ours.load_anns() == theirs.load_anns()
    assert ours.load_imgs(images[:1]) == theirs.load_imgs(images[:1])
    assert ours.load_cats(None) == theirs.load_cats(None)
    for one in theirs.load_anns():
        np.testing.assert_array_equal(ours.ann_to_mask(one), theirs.ann_to_mask(one))


def test_missing_images_are_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = files(tmp_path)
    dataset = json.loads(path.read_text())
    for one in dataset["images"]:
        one["coco_url"] = f"http://host/{one['id']}.jpg"
    path.write_text(json.dumps(dataset))
    ours = LVIS_SIDES[1][0](path)
    asked: list[tuple[str, Path]] = []
    module = "lvdet.integrations.lvis.lvis.urlretrieve"
    monkeypatch.setattr(module, lambda url, place: asked.append((url, place)))
    first, second = ours.get_img_ids()[:2]
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / f"{first}.jpg").touch()
    ours.download(str(folder), [first, second])
    assert asked == [(f"http://host/{second}.jpg", folder / f"{second}.jpg")]


@pytest.mark.filterwarnings("ignore:The 'warn' method is deprecated")
@pytest.mark.parametrize("side", [0, 1])
def test_types_and_order_are_required_as_by_lvis(side: int, tmp_path: Path) -> None:
    """The kind of error is lvis' own, which callers catch."""
    path, results = files(tmp_path)
    lvis, lvis_results, evaluator = LVIS_SIDES[side]
    truth = lvis(str(path))
    with pytest.raises(TypeError, match="Unsupported type"):
        lvis_results(5, results)
    with pytest.raises(TypeError, match="Unsupported type"):
        evaluator(truth, 5, "bbox")
    with pytest.raises(IndexError):
        lvis_results(truth, [])
    evaluation = evaluator(truth, lvis_results(str(path), results), "bbox")
    with pytest.raises(RuntimeError, match="accumulate"):
        evaluation.summarize()


def test_what_lvdet_refuses(tmp_path: Path) -> None:
    path, results = files(tmp_path)
    lvis, lvis_results, evaluator = LVIS_SIDES[1]
    truth = lvis(path)
    with pytest.raises(InputError, match="results are a dict, expected a list of dicts"):
        lvis_results(truth, {})
    strange = [{**results[0], "image_id": -5}]
    with pytest.raises(InputError, match="has no image -5"):
        lvis_results(truth, strange)
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(InputError, match="not an annotation file: expected a JSON object"):
        lvis(tmp_path / "list.json")
    evaluation = evaluator(truth, lvis_results(truth, results), "bbox")
    with pytest.raises(LvdetError, match=r"run evaluate\(\) first"):
        evaluation.accumulate()
    evaluation.params.use_cats = 0
    with pytest.raises(LvdetError, match="use_cats"):
        evaluation.evaluate()
