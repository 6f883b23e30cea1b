"""What scripts do with the drop-ins: each gap that others' drop-ins had is a test here."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from integrations.side_by_side import (
    COCO_SIDES,
    LVIS_SIDES,
    Json,
    assert_same_records,
    indexed,
    printed,
)
from integrations.test_cocoeval import compare, run, some_classes
from lvdet.errors import InputError, LvdetError
from lvdet.integrations.lvis import LVISEval, LVISVis
from lvdet.integrations.pycocotools import COCO, COCOeval, Params, mask
from oracles.cases import coco_case, lvis_case, without_boxes
from oracles.coco_reference import KEYS

BOXED, BOXED_RESULTS = coco_case(3, masks=False)
DRAWN, DRAWN_RESULTS = coco_case(5, masks=True)


def stats(evaluation: Any) -> Any:
    printed(evaluation.summarize)
    return evaluation.stats


def test_runs_may_be_bytes() -> None:
    """Gap 1: elsewhere read as an empty mask."""
    values = []
    for form in (bytes.decode, bytes):
        truth = indexed(COCO, DRAWN)
        for one in truth.dataset["annotations"]:
            encoded = truth.annToRLE(one)
            counts = encoded["counts"]
            counts = counts.encode() if isinstance(counts, str) else counts
            one["segmentation"] = {**encoded, "counts": form(counts)}
        found = [
            {"image_id": one["image_id"], "category_id": one["category_id"], "score": 0.5}
            | {"segmentation": one["segmentation"]}
            for one in truth.dataset["annotations"]
        ]
        evaluation, _ = printed(evaluate, truth, printed(truth.loadRes, found)[0], "segm")
        values.append(stats(evaluation))
    np.testing.assert_array_equal(*values)
    assert values[0][0] > 0.5


def evaluate(truth: Any, found: Any, iou: str) -> Any:
    evaluation = COCOeval(truth, found, iou)
    evaluation.evaluate()
    evaluation.accumulate()
    return evaluation


def test_params_changed_in_place_count() -> None:
    """Gap 2: elsewhere changed a copy."""

    def change(params: Any) -> None:
        params.maxDets[:] = [1, 2, 3]
        params.imgIds.pop()
        params.iouThrs[0] = 0.1

    (theirs, _), (ours, _) = (
        printed(run, side, BOXED, BOXED_RESULTS, "bbox", change) for side in COCO_SIDES
    )
    np.testing.assert_array_equal(ours.eval["precision"], theirs.eval["precision"])


def test_the_dataset_is_live() -> None:
    """Gap 3: elsewhere a copy, so that assignments and `createIndex` did nothing."""
    truth = indexed(COCO, BOXED)
    image = truth.dataset["images"][0]["id"]
    one = {"id": 999, "image_id": image, "category_id": 77, "bbox": [0, 0, 5, 5], "area": 25}
    truth.dataset["annotations"].append(one)
    truth.dataset["categories"].append({"id": 77})
    printed(truth.createIndex)
    assert truth.loadAnns(999) == [one]
    assert truth.anns[999] is one
    assert 77 in truth.getCatIds()
    assert truth.getAnnIds(catIds=[77]) == [999]
    assert truth.imgToAnns[image][-1] is one
    assert truth.catToImgs[77] == [image]


def test_fields_beside_the_usual_ones_stay() -> None:
    """Gap 4: elsewhere `area_bbox` and `area_segm`, by which TorchMetrics changes areas, got
    lost."""
    sizes = []
    for coco, evaluator in COCO_SIDES:
        truth, found = indexed(coco, BOXED), indexed(coco, as_dataset(BOXED, BOXED_RESULTS))
        for one in (*truth.dataset["annotations"], *found.dataset["annotations"]):
            one["area_segm"] = one["area"] / 3
        for one in (*truth.dataset["annotations"], *found.dataset["annotations"]):
            one["area"] = one["area_segm"]
        evaluation, _ = printed(evaluate_with, evaluator, truth, found)
        sizes.append(evaluation)
    np.testing.assert_array_equal(sizes[1].eval["precision"], sizes[0].eval["precision"])
    assert_same_records(sizes[1].evalImgs, sizes[0].evalImgs)


def evaluate_with(evaluator: Any, truth: Any, found: Any) -> Any:
    evaluation = evaluator(truth, found, iouType="bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    return evaluation


def as_dataset(dataset: Json, results: list[Json]) -> Json:
    """Results as a dataset of their own, ids from 0."""
    made = [
        {"id": place, "area": one["bbox"][2] * one["bbox"][3], "iscrowd": 0, **one}
        for place, one in enumerate(results)
    ]
    return {**dataset, "annotations": made}


def test_masks_may_be_booleans() -> None:
    """Gap 5: elsewhere refused, as were int8 and views."""
    pixels = np.random.default_rng(1).random((9, 7)) < 0.5
    expected = mask.encode(np.asfortranarray(pixels.astype(np.uint8)))
    assert mask.encode(pixels) == mask.encode(pixels.astype(np.int8)) == expected
    assert mask.encode(np.repeat(pixels, 2, axis=0)[::2]) == expected


def test_the_kind_of_overlap_may_be_named() -> None:
    """Gap 6: elsewhere `iouType=` was not known."""
    assert COCOeval(cocoGt=None, cocoDt=None, iouType="bbox").params.iouType == "bbox"
    assert Params(iouType="segm").iouType == "segm"


def test_images_need_no_size_and_classes_no_name() -> None:
    """Gap 7: elsewhere refused. Masks then say how large their image is."""
    for dataset, results, iou in ((BOXED, BOXED_RESULTS, "bbox"), (DRAWN, DRAWN_RESULTS, "segm")):
        truth = indexed(COCO, dataset)
        for one in truth.dataset["annotations"]:
            if iou == "segm":
                one["segmentation"] = truth.annToRLE(one)
        bare = indexed(COCO, {"images": [], "categories": [], "annotations": []})
        bare.dataset = {
            "images": [{"id": one["id"]} for one in dataset["images"]],
            "categories": [{"id": one["id"]} for one in dataset["categories"]],
            "annotations": truth.dataset["annotations"],
        }
        printed(bare.createIndex)
        values = []
        for gt in (truth, bare):
            found, _ = printed(gt.loadRes, copy.deepcopy(results))
            values.append(stats(printed(evaluate, gt, found, iou)[0]))
        np.testing.assert_array_equal(*values)


@pytest.mark.parametrize("iou", ["bbox", "segm"])
def test_ids_and_sizes_may_be_whole_floats(iou: str) -> None:
    """As pandas writes them: elsewhere refused."""
    dataset, results = coco_case(5, masks=iou == "segm")
    for image in dataset["images"]:
        image |= {name: float(image[name]) for name in ("id", "height", "width")}
    for one in (*dataset["annotations"], *results):
        one |= {name: float(one[name]) for name in ("image_id", "category_id")}
    for one in dataset["categories"]:
        one["id"] = float(one["id"])
    compare(dataset, results, iou)


def test_text_goes_through_sys_stdout() -> None:
    """Elsewhere written past it, where nothing can redirect it."""
    evaluation, _ = printed(run, COCO_SIDES[1], BOXED, BOXED_RESULTS, "bbox")
    assert printed(evaluation.summarize)[1].count("\n") == 12


def test_batches_of_images_are_put_together_as_torchvision_does() -> None:
    """Matched batch by batch, `evalImgs` concatenated, accumulated once."""
    outcome = []
    for coco, evaluator in COCO_SIDES:

        def batches(coco: Any = coco, evaluator: Any = evaluator) -> Any:
            truth = indexed(coco, BOXED)
            merged = evaluator(truth, iouType="bbox")
            parts, images = [], []
            every = sorted(truth.getImgIds())
            for ids in (every[:2], every[2:]):
                rows = [copy.deepcopy(one) for one in BOXED_RESULTS if one["image_id"] in ids]
                merged.cocoDt = truth.loadRes(rows) if rows else coco()
                if not rows:
                    merged.cocoDt.dataset = {"annotations": []}
                merged.params.imgIds = list(ids)
                merged.evaluate()
                areas = len(merged.params.areaRng)
                parts.append(np.asarray(merged.evalImgs).reshape(-1, areas, len(ids)))
                images += merged.params.imgIds
            merged.evalImgs = list(np.concatenate(parts, 2).flatten())
            merged.params.imgIds = images
            merged._paramsEval = copy.deepcopy(merged.params)
            merged.accumulate()
            merged.summarize()
            return merged

        outcome.append(printed(batches))
    (theirs, their_text), (ours, our_text) = outcome
    assert our_text == their_text
    for key in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(ours.eval[key], theirs.eval[key])
    whole, _ = printed(run, COCO_SIDES[1], BOXED, BOXED_RESULTS, "bbox")
    np.testing.assert_array_equal(ours.eval["precision"], whole.eval["precision"])


def test_scripts_may_have_an_evaluate_of_their_own() -> None:
    """As DETR's: it prepares, fills `ious`, and asks for image after image."""
    for change in (lambda params: None, lambda params: setattr(params, "useCats", 0)):
        outcome = []
        for coco, evaluator in COCO_SIDES:
            truth = indexed(coco, BOXED)
            evaluation = evaluator(truth, printed(truth.loadRes, rows())[0], "bbox")
            params = evaluation.params
            change(params)
            evaluation._prepare()
            classes = params.catIds if params.useCats else [-1]
            pairs = [(image, one) for image in params.imgIds for one in classes]
            evaluation.ious = {pair: evaluation.computeIoU(*pair) for pair in pairs}
            evaluation.evalImgs = [
                evaluation.evaluateImg(image, one, area, params.maxDets[-1])
                for one in classes
                for area in params.areaRng
                for image in params.imgIds
            ]
            evaluation._paramsEval = copy.deepcopy(params)
            printed(evaluation.accumulate)
            outcome.append(evaluation)
        assert_same_records(outcome[1].evalImgs, outcome[0].evalImgs)
        for key in ("precision", "recall", "scores"):
            np.testing.assert_array_equal(outcome[1].eval[key], outcome[0].eval[key])


def rows() -> list[Json]:
    return copy.deepcopy(BOXED_RESULTS)


def test_accumulate_takes_params_of_its_own() -> None:
    outcome = []
    for side in COCO_SIDES:
        evaluation, _ = printed(run, side, BOXED, BOXED_RESULTS, "bbox")
        params = copy.deepcopy(evaluation.params)
        params.areaRng, params.maxDets = params.areaRng[:2], [100, 7, 10]
        params.recThrs = np.array([0.5])
        params.imgIds = params.imgIds[:2]
        printed(evaluation.accumulate, params)
        outcome.append(evaluation.eval)
    for key in ("precision", "recall", "scores"):
        np.testing.assert_array_equal(outcome[1][key], outcome[0][key])
    params.catIds = [*params.catIds[::-1], 5]
    with pytest.raises(LvdetError, match="catIds differ from those that evaluate"):
        printed(evaluation.accumulate, params)


def test_lazy_overlaps_can_be_mapped_to_their_own_type() -> None:
    """As TorchMetrics does with `ious` for an extended summary."""
    evaluation, _ = printed(run, COCO_SIDES[1], BOXED, BOXED_RESULTS, "bbox")
    mapped = type(evaluation.ious)({key: np.shape(one) for key, one in evaluation.ious.items()})
    assert len(mapped) == len(evaluation.ious) == len(BOXED["images"]) * len(BOXED["categories"])
    assert all(mapped[key] == np.shape(one) for key, one in evaluation.ious.items())
    with pytest.raises(KeyError):
        evaluation.ious[-1, -1]


def test_evaluators_are_copied_and_pickled() -> None:
    evaluation, _ = printed(run, COCO_SIDES[1], BOXED, BOXED_RESULTS, "bbox")
    for twin in (copy.deepcopy(evaluation), pickle.loads(pickle.dumps(evaluation))):
        assert_same_records(twin.evalImgs, evaluation.evalImgs)


class Louder(COCOeval):
    def summarize(self) -> None:
        print("louder")
        super().summarize()


class Looser(COCOeval):
    def computeIoU(self, imgId: Any, catId: Any) -> Any:  # noqa: N802, N803
        return super().computeIoU(imgId, catId)


def test_subclasses_change_the_summary_but_not_the_overlaps() -> None:
    evaluation, _ = printed(run, (COCO, Louder), BOXED, BOXED_RESULTS, "bbox")
    assert printed(evaluation.summarize)[1].startswith("louder\n Average Precision")
    with pytest.raises(LvdetError, match=r"^Looser overrides computeIoU\(\), which lvdet does not"):
        printed(run, (COCO, Looser), BOXED, BOXED_RESULTS, "bbox")


def refusals() -> dict[str, Any]:
    truth = indexed(COCO, BOXED)
    image, one = BOXED["images"][0]["id"], {"bbox": [0, 0, 1, 1], "score": 1, "category_id": 1}
    flat = indexed(COCO, DRAWN)
    flat.dataset["annotations"][0]["segmentation"] = {"size": [1, 1], "counts": b"1"}

    def of_masks() -> None:
        evaluate(flat, flat.loadRes(copy.deepcopy(DRAWN_RESULTS)), "segm")

    return {
        "keypoints are not evaluated": lambda: COCOeval(truth, truth, "keypoints"),
        "keypoints are": lambda: truth.loadRes([{"keypoints": [1, 2, 2], "image_id": image}]),
        "expected 'bbox' or 'segm'": lambda: Params(iouType="cubes"),
        "has no image -5": lambda: truth.loadRes([{**one, "image_id": -5}]),
        "neither bbox nor segm": lambda: truth.loadRes([{"image_id": image, "score": 1}]),
        r"expected \(N, 7\)": lambda: truth.loadRes(np.zeros((2, 5))),
        "a mask is": of_masks,
        "run accumulate": COCOeval(truth, truth, "bbox").summarize,
        "run evaluate": COCOeval(truth, truth, "bbox").accumulate,
        "made without cocoGt": COCOeval(truth, iouType="bbox").evaluate,
        "LVISVis is not part": LVISVis,
    }


@pytest.mark.parametrize("what", refusals())
def test_what_cannot_be_done_is_said_in_one_line(what: str) -> None:
    with pytest.raises(LvdetError, match=what) as error:
        printed(refusals()[what])
    assert "\n" not in str(error.value)


def test_empty_results_fail_as_callers_catch_it() -> None:
    for side in COCO_SIDES:
        with pytest.raises(IndexError):
            printed(indexed(side[0], BOXED).loadRes, [])


def test_queries_are_pycocotools_s() -> None:
    answers = []
    for coco, _ in COCO_SIDES:
        one = indexed(coco, BOXED)
        image, other = one.getImgIds()[0], one.getCatIds()[0]
        area = sorted(found["area"] for found in one.anns.values())
        queries = [
            one.getAnnIds(),
            one.getAnnIds(imgIds=image),
            one.getAnnIds(imgIds=[image, -1], catIds=other),
            one.getAnnIds(areaRng=[area[0], area[-1]], iscrowd=False),
            one.getCatIds(catNms=BOXED["categories"][0]["name"]),
            one.getCatIds(catIds=other),
            sorted(one.getImgIds(catIds=[other])),
            sorted(one.getImgIds(imgIds=[image], catIds=[other])),
            one.loadAnns(one.getAnnIds()),
            one.loadCats(other),
            one.loadImgs([image]),
            dict(one.imgToAnns),
            dict(one.catToImgs),
        ]
        rows = np.array([[image, 1, 2, 3, 4, 0.5, other], [image, 0, 0, 9, 9, 0.25, other]])
        found, text = printed(one.loadRes, rows)
        answers.append(([*queries, found.dataset["annotations"]], text))
    assert answers[0] == answers[1]


def test_drawing_needs_matplotlib_only_when_called() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    truth = indexed(COCO, DRAWN)
    truth.showAnns(truth.loadAnns(truth.getAnnIds()), draw_bbox=True)
    assert plt.gca().patches or plt.gca().images
    plt.close("all")
    assert truth.showAnns([]) == 0
    assert printed(truth.showAnns, [{"caption": "a cat"}])[1] == "a cat\n"


def test_coco_s_own_demo(tmp_path: Path) -> None:
    """The steps of pycocoEvalDemo.ipynb."""
    annotations, results = tmp_path / "instances.json", tmp_path / "results.json"
    annotations.write_text(json.dumps({**BOXED, "info": {"year": 2014}}))
    results.write_text(json.dumps(BOXED_RESULTS))

    def demo(coco: Any, evaluator: Any) -> Any:
        kind = ["segm", "bbox", "keypoints"][1]
        print(f"Running demo for *{kind}* results.")
        truth = coco(str(annotations))
        truth.info()
        found = truth.loadRes(str(results))
        images = sorted(truth.getImgIds())[0:100]
        evaluation = evaluator(truth, found, kind)
        evaluation.params.imgIds = images
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        return evaluation

    (theirs, their_text), (ours, our_text) = (printed(demo, *side) for side in COCO_SIDES)
    assert our_text == their_text
    np.testing.assert_array_equal(ours.stats, theirs.stats)


def test_lvis_own_script(tmp_path: Path) -> None:
    """The steps of lvis' test.py."""
    dataset, found = lvis_case(7, masks=False)
    annotations, results = tmp_path / "lvis_val.json", tmp_path / "results.json"
    annotations.write_text(json.dumps(dataset))
    results.write_text(json.dumps(found))

    def script(evaluator: Any) -> Any:
        evaluation = evaluator(str(annotations), str(results), "bbox")
        evaluation.run()
        evaluation.print_results()
        return evaluation.get_results()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (theirs, their_text), (ours, our_text) = (
            printed(script, evaluator) for _, _, evaluator in LVIS_SIDES
        )
    assert our_text == their_text
    assert list(ours.items()) == list(theirs.items())


def test_lvis_refuses_what_it_cannot_do() -> None:
    found = lvis_case(7, masks=False)[1]
    truth = object.__new__(LVIS_SIDES[1][0])
    with pytest.raises(TypeError):
        LVISEval(3, found)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="iou_type: cubes"):
        LVISEval(truth, found, "cubes")


@pytest.mark.parametrize("iou", ["bbox", "segm"])
def test_fixed_and_pool_beside(tmp_path: Path, iou: str) -> None:
    """AP-Old is the summary's, whatever the areas of results were made from."""
    for seed in range(12):
        dataset, results = lvis_case(seed, masks=iou == "segm")
        results = without_boxes(results) if iou == "segm" and seed % 2 else results
        path = tmp_path / "annotations.json"
        path.write_text(json.dumps(dataset))
        lvis, lvis_results, lvis_eval = LVIS_SIDES[1]
        truth = lvis(path)
        evaluation = lvis_eval(truth, lvis_results(truth, results, max_dets=7), iou)
        evaluation.run()
        own = evaluation.lvdet_evaluation()
        assert set(own.protocols) == {"old", "fixed", "pool"}
        assert own["old"].budget == "7/image"
        for name, value in evaluation.results.items():
            assert_equal_numbers(getattr(own["old"], name.split("@")[0]), value)
        dataset, results = coco_case(seed, masks=iou == "segm")
        if results:
            coco, _ = printed(run, COCO_SIDES[1], dataset, results, iou)
            own = coco.lvdet_evaluation(protocols=["old"])
            for name, value in zip(KEYS, stats(coco), strict=True):
                assert_equal_numbers(own["old"].metrics[name], value)
            fewer, _ = printed(run, COCO_SIDES[1], dataset, results, iou, some_classes)
            own = fewer.lvdet_evaluation(protocols="old")
            assert_equal_numbers(own["old"].AP, stats(fewer)[0])
    with pytest.raises(InputError, match="unknown protocol"):
        coco.lvdet_evaluation(protocols=["new"])


def assert_equal_numbers(ours: float, reference: float) -> None:
    """The same to 1e-12, where the reference tools say -1 for undefined."""
    assert np.isnan(ours) if reference == -1 else abs(ours - reference) < 1e-12
