"""CocoEvaluator with torchvision's methods, beside pycocotools on the same predictions."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.side_by_side import COCO_SIDES, Json, indexed, printed
from lvdet.errors import InputError, LvdetError
from lvdet.integrations.image_collection import ImageCollection
from lvdet.integrations.torchvision import CocoEvaluator
from oracles.cases import coco_case, decoded, lvis_case
from oracles.lvis_reference import evaluate_lvis

KINDS = ["bbox", "segm"]


def predictions(dataset: Json, results: list[Json]) -> dict[int, Any]:
    """Results as torchvision's detectors return them; an image without any is an empty dict."""
    found: dict[int, Any] = {}
    for image in dataset["images"]:
        rows = [one for one in results if one["image_id"] == image["id"]]
        corners = [[x, y, x + w, y + h] for x, y, w, h in (one["bbox"] for one in rows)]
        masks = [decoded(one["segmentation"]) for one in rows if "segmentation" in one]
        found[image["id"]] = rows and {
            "boxes": torch.tensor(corners, dtype=torch.float64),
            "scores": torch.tensor([one["score"] for one in rows], dtype=torch.float64),
            "labels": torch.tensor([one["category_id"] for one in rows]),
            "masks": torch.tensor(np.array(masks))[:, None] * 0.9 if masks else None,
        }
    return found


def rounded(results: list[Json]) -> list[Json]:
    """Boxes at whole pixels, so that corners and sizes say the same exactly."""
    made = []
    for one in results:
        box = [float(round(abs(value))) for value in one.get("bbox", [3, 4, 5, 6])]
        made.append({**one, "bbox": box})
    return made


def updated(
    dataset: Json, results: list[Json], kinds: list[str], batch: int = 2, side: int = 0
) -> CocoEvaluator:
    evaluator = CocoEvaluator(indexed(COCO_SIDES[side][0], dataset), kinds)
    items = [*predictions(dataset, results).items()]
    for place in range(0, len(items), batch):
        evaluator.update(dict(items[place : place + batch]))
    return evaluator


@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), batch=st.integers(1, 4), side=st.integers(0, 1))
def test_numbers_and_text_are_pycocotools_s(seed: int, batch: int, side: int) -> None:
    dataset, results = coco_case(seed, masks=True)
    results = rounded(results)
    if not results:
        return

    def reference() -> list[Any]:
        out = []
        for kind in KINDS:
            coco, evaluator = COCO_SIDES[0]
            truth = indexed(coco, dataset)
            kept = "bbox" if kind == "bbox" else "segmentation"
            fields = ("image_id", "category_id", "score", kept)
            rows = [{name: one[name] for name in fields} for one in results]
            evaluation = evaluator(truth, truth.loadRes(rows), kind)
            evaluation.evaluate()
            evaluation.accumulate()
            print(f"IoU metric: {kind}")
            evaluation.summarize()
            out.append(evaluation.stats)
        return out

    def ours() -> list[Any]:
        evaluator = updated(dataset, results, KINDS, batch, side)
        evaluator.synchronize_between_processes()
        evaluator.accumulate()
        evaluator.summarize()
        return [one.stats for one in evaluator.coco_eval.values()]

    (theirs, their_text), (mine, our_text) = printed(reference), printed(ours)
    np.testing.assert_array_equal(mine, theirs)
    assert summaries(our_text) == summaries(their_text)


def summaries(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith((" Average", "IoU metric"))]


def test_updates_are_cumulative_and_images_count_once() -> None:
    dataset, results = coco_case(3, masks=False)
    found = predictions(dataset, rounded(results))
    first, *rest = sorted(found, key=lambda image: len(found[image]), reverse=True)
    assert found[first]
    evaluator, _ = printed(CocoEvaluator, indexed(COCO_SIDES[1][0], dataset), ["bbox"])
    evaluator.update({first: found[first]})
    printed(evaluator.accumulate)
    evaluator.update({first: {}} | {image: found[image] for image in rest})
    printed(evaluator.accumulate)
    whole, _ = printed(updated, dataset, rounded(results), ["bbox"])
    printed(whole.accumulate)
    ours, theirs = (one.coco_eval["bbox"].eval["precision"] for one in (evaluator, whole))
    np.testing.assert_array_equal(ours, theirs)
    assert sorted(evaluator.img_ids) == sorted(found)


def test_params_are_the_callers() -> None:
    dataset, results = coco_case(3, masks=False)
    evaluator, _ = printed(updated, dataset, rounded(results), ["bbox"])
    evaluator.coco_eval["bbox"].params.iouThrs = np.array([0.5])
    printed(evaluator.accumulate)
    assert len(evaluator.coco_eval["bbox"].eval["precision"]) == 1


def test_processes_share_their_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts as they come from a gather: unequal, and with one image twice."""
    dataset, results = coco_case(3, masks=True)
    found = predictions(dataset, rounded(results))
    ids = list(found)
    parts = []
    for share in (ids[:1], ids):
        evaluator, _ = printed(CocoEvaluator, indexed(COCO_SIDES[1][0], dataset), KINDS)
        evaluator.update({image: found[image] for image in share})
        parts.append(pickle.dumps(evaluator._rows))

    def gather(out: list[Any], own: ImageCollection) -> None:
        out[:] = [pickle.loads(part) for part in parts]

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    monkeypatch.setattr(torch.distributed, "all_gather_object", gather)
    evaluator.synchronize_between_processes()
    whole, _ = printed(updated, dataset, rounded(results), KINDS)
    for one in (evaluator, whole):
        printed(one.accumulate)
        printed(one.summarize)
    for kind in KINDS:
        np.testing.assert_array_equal(evaluator.coco_eval[kind].stats, whole.coco_eval[kind].stats)


def test_fixed_and_pool_by_the_rules_of_the_annotations() -> None:
    dataset, results = lvis_case(7, masks=False, quirks=False)
    results = rounded(results)
    evaluator, _ = printed(updated, dataset, results, ["bbox"])
    own = evaluator.lvdet_evaluation("bbox")
    assert set(own) == {"old", "fixed", "pool"}
    assert own["old"].budget == "300/image"
    for name, value in evaluate_lvis(dataset, results, "bbox").items():
        found = own["old"].metrics[name]
        assert np.isnan(found) if value is None else found == pytest.approx(value, abs=1e-12)


def refusals() -> dict[str, Callable[[], Any]]:
    dataset, _ = coco_case(3, masks=False)
    evaluator = CocoEvaluator(indexed(COCO_SIDES[1][0], dataset), ["bbox"])
    image = dataset["images"][0]["id"]
    one = {"boxes": torch.zeros(1, 4), "scores": torch.zeros(1), "labels": torch.zeros(2).long()}
    return {
        "the annotations have no image -7": lambda: evaluator.update({-7: {}}),
        "image .*: 1 box and 1 score for 2 labels": lambda: evaluator.update({image: one}),
        "keypoints are not evaluated": lambda: CocoEvaluator(evaluator.coco_gt, ["keypoints"]),
    }


@pytest.mark.parametrize("what", refusals())
def test_what_cannot_be_done_is_said_in_one_line(what: str) -> None:
    with pytest.raises(LvdetError, match=what) as error:
        printed(refusals()[what])
    assert "\n" not in str(error.value)


def test_a_class_without_an_id_is_refused() -> None:
    rows = ImageCollection("frames", class_ids={0: 17, 2: 18})
    rows.add(1, [[0, 0, 2, 3]], [0.5], [2])
    assert rows.detections().category_ids.tolist() == [18]
    with pytest.raises(InputError, match="frames, image 2: label 1 has no class id"):
        rows.add(2, [[0, 0, 2, 3]], [0.5], [1])
    listed = ImageCollection("frames", class_ids=[17, 18])
    for label in (2, -1):
        with pytest.raises(InputError, match=f"image 2: label {label}, expected 0 to 1, an index"):
            listed.add(2, [[0, 0, 2, 3]], [0.5], [label])
