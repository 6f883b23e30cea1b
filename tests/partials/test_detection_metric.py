"""The metric of loops equals the evaluation of a file with the same predictions."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from update_stream import bounded_metric, update_often

import lvdet
from loop_images import in_order, loop_images
from lvdet.partials import detection_metric
from oracles.cases import coco_case, lvis_case
from tabled import read_case

FORMATS = {"xywh", "xyxy", "cxcywh"}


def fed(
    metric: lvdet.DetectionMetric, images: list[tuple[Any, Any]], batch: int = 3
) -> lvdet.DetectionMetric:
    for begin in range(0, len(images), batch):
        predictions, targets = zip(*images[begin : begin + batch], strict=True)
        metric.update(predictions, targets)
    return metric


def numbers(result: lvdet.Evaluation) -> dict[str, Any]:
    return result.to_dict()["protocols"]


@given(
    seed=st.integers(0, 100_000),
    federated=st.booleans(),
    with_gt=st.booleans(),
    limit=st.integers(0, 12),
    processes=st.integers(1, 3),
    levels=st.sampled_from([1, 3, 1000]),
)
def test_any_order_and_any_processes_equal_the_file(
    seed: int,
    federated: bool,
    with_gt: bool,
    limit: int,
    processes: int,
    levels: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    case = (lvis_case if federated else coco_case)(seed, False, quirks=False)
    gt, dt = read_case(*case, tmp_path_factory.getbasetemp())
    dt = in_order(dt.with_scores(np.round(dt.score * levels) / levels))
    settings: dict[str, Any] = {"dets_per_class": limit, "budgets": [(lvdet.PerImage(4),)]}
    rng, images = random.Random(seed), list(loop_images(gt, dt))
    rng.shuffle(images)
    doubled = [*images, *rng.sample(images, rng.randint(0, len(images)))]
    if with_gt:
        first: Any = gt
        made = settings
    else:
        first = None
        made = settings | {"categories": gt.categories, "federated": federated}
    whole = lvdet.DetectionMetric(first, box_format="xywh", **made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(detection_metric, "IMAGES", rng.randint(1, 4))
        parts = [
            fed(whole.emptied(), doubled[rank::processes], rng.randint(1, 4))
            for rank in range(processes)
        ]
        repeated = sum(one.repeated for one in parts)
        whole.merge([one.to_bytes() for one in parts], repeated=repeated)
    result, expected = whole.compute(), lvdet.evaluate(gt, dt, **settings)
    assert numbers(result) == numbers(expected)
    assert whole.repeated == len(doubled) - len(images)
    assert result.inputs["annotations"] == expected.inputs["annotations"]
    assert any("given again" in one for one in result.warnings) == (len(doubled) > len(images))


@pytest.mark.parametrize("iou", ["segm", "boundary"])
@pytest.mark.parametrize("with_gt", [True, False])
def test_masks_equal_the_file(iou: str, with_gt: bool, tmp_path: Path) -> None:
    gt, dt = read_case(*lvis_case(12, True, quirks=False), tmp_path)
    dt = in_order(dt)
    known = (gt,) if with_gt else ()
    made = {} if with_gt else {"categories": gt.categories, "federated": True}
    metric = lvdet.DetectionMetric(*known, iou=iou, **made)
    fed(metric, list(loop_images(gt, dt, masks=True)))
    assert numbers(metric.compute()) == numbers(lvdet.evaluate(gt, dt, iou=iou))


def test_box_formats_and_encoded_masks() -> None:
    box = np.array([[10.0, 20.0, 30.0, 40.0]])
    corners, centres = box.copy(), box.copy()
    corners[:, 2:] += box[:, :2]
    centres[:, :2] += box[:, 2:] / 2
    for name, values in (("xywh", box), ("xyxy", corners), ("cxcywh", centres)):
        metric = lvdet.DetectionMetric(box_format=name)
        item = {"boxes": values, "labels": [3]}
        metric.update([item | {"scores": [0.5]}], [item | {"image_id": 7}])
        assert pytest.approx(1) == metric.compute()["fixed"].AP
    metric = lvdet.DetectionMetric(iou="segm")
    mask = {"size": [2, 2], "counts": [1, 2, 1]}
    item = {"masks": [mask], "labels": [3]}
    metric.update([item | {"scores": [0.5]}], [item | {"image_id": 7}])
    assert pytest.approx(1) == metric.compute()["fixed"].AP


def test_classes_by_default_are_those_that_occur() -> None:
    metric = lvdet.DetectionMetric()
    box = [[0, 0, 50, 50]]
    metric.update(
        [{"boxes": box, "labels": [9], "scores": [0.5]}],
        [{"boxes": box, "labels": [4], "image_id": 1}],
    )
    result = metric.compute()
    assert result.per_class["id"].tolist() == [4, 9]
    assert result["fixed"].AP == 0
    assert result["pool"].AP == 0
    metric.reset()
    assert len(metric) == 0
    named = lvdet.DetectionMetric(categories={4: "cat", 9: "dog"}, classes=["cat"])
    assert named.compute().per_class["name"].tolist() == ["cat"]


def test_a_metric_without_images_is_undefined() -> None:
    metric = lvdet.DetectionMetric()
    assert np.isnan(metric.compute()["fixed"].AP)
    assert repr(metric) == "DetectionMetric(0 images, 0 of 0 detections)"


def test_state_as_bytes_continues(tmp_path: Path) -> None:
    gt, dt = read_case(*lvis_case(4, False), tmp_path)
    images = list(loop_images(gt, in_order(dt)))
    metric = lvdet.DetectionMetric(gt, box_format="xywh")
    fed(metric, images[:2])
    state = metric.to_bytes()
    other = lvdet.DetectionMetric(gt, box_format="xywh")
    other.merge([state])
    fed(fed(other, images[2:]), images[:1])
    assert numbers(other.compute()) == numbers(lvdet.evaluate(gt, in_order(dt)))
    assert other.repeated == 1
    copied = deepcopy(other)
    copied.reset()
    assert len(other) == len(images)


BOX, LABEL, SCORE = [[0, 0, 9, 9]], [1], [0.5]
PREDICTION = {"boxes": BOX, "labels": LABEL, "scores": SCORE}
TARGET = {"boxes": BOX, "labels": LABEL, "image_id": 1}


@pytest.mark.parametrize(
    ("prediction", "target", "what"),
    [
        ({"boxes": [[0, 0, 9]]}, {}, r"predictions of image 1: box has shape \(1, 3\)"),
        ({"scores": []}, {}, "predictions of image 1: 0 scores for 1 label"),
        ({"scores": [np.nan]}, {}, "predictions of image 1, row 0: score is nan"),
        ({"labels": [1.5]}, {}, "row 0: label is 1.5, expected a 64-bit integer"),
        ({"labels": [1, 2]}, {}, "predictions of image 1: 1 box and 1 score for 2 labels"),
        ({"boxes": [[0, 0, -9, 9]]}, {}, "expected a non-negative width and height"),
        ({"boxes": None}, {}, "predictions of image 1: has no 'boxes'"),
        ({"scores": None}, {}, "predictions of image 1: has no 'scores'"),
        ({}, {"boxes": [[0, 0, np.inf, 9]]}, "target of image 1, row 0: bbox is"),
        ({}, {"area": [1, 2]}, r"target of image 1: area has shape \(2,\)"),
        ({}, {"iscrowd": [1, 0]}, "target of image 1: 2 iscrowd for 1 labels"),
        ({}, {"image_id": [1, 2]}, "image_id has 2 values"),
        ({}, {"image_id": 1.5}, "image_id is 1.5, expected an integer"),
        ({}, {"image_id": None}, "image_id is None, expected an integer"),
    ],
)
def test_images_that_cannot_be_are_named(
    prediction: dict[str, Any], target: dict[str, Any], what: str
) -> None:
    metric = lvdet.DetectionMetric()
    with pytest.raises(lvdet.InputError, match=what) as error:
        metric.update([PREDICTION | prediction], [TARGET | target])
    assert "\n" not in str(error.value)
    assert len(metric) == 0


def test_arguments_that_cannot_be(tmp_path: Path) -> None:
    gt, _ = read_case(*lvis_case(4, False), tmp_path)
    for made, what in (
        ({"box_format": "xyxyn"}, "box format is 'xyxyn'"),
        ({"iou": "no"}, "iou is 'no'"),
        ({"protocols": ["no"]}, "unknown protocol"),
        ({"thresholds": [2.0]}, "IoU thresholds"),
        ({"classes": [1]}, "pass categories or gt"),
        ({"categories": {"a": "b"}}, "expected names by id"),
        ({"gt": gt, "federated": True}, "pass only gt"),
        ({"gt": gt, "classes": ["no such"]}, "no class named"),
        ({"gt": gt, "like": "coco"}, "is for COCO annotations"),
    ):
        with pytest.raises(lvdet.InputError, match=what):
            lvdet.DetectionMetric(**made)  # type: ignore[arg-type]
    metric = lvdet.DetectionMetric(gt)
    for predictions, targets, what in (
        ([PREDICTION], [TARGET | {"image_id": 10**12}], "image_id 1000000000000 is not in"),
        ([PREDICTION], None, "has no image_id"),
        ([PREDICTION], [], "1 predictions for 0 targets"),
        (PREDICTION, TARGET, "lists with a mapping"),
        ([5], [TARGET | {"image_id": int(gt.images.ids[0])}], "of type int, expected a mapping"),
    ):
        with pytest.raises(lvdet.InputError, match=what):
            metric.update(predictions, targets)
    own = lvdet.DetectionMetric(categories={2: "dog"})
    with pytest.raises(lvdet.InputError, match="target of image 1: label 1 is not among the cl"):
        own.update([PREDICTION], [TARGET])
    assert len(own) == 0
    with pytest.raises(lvdet.InputError, match="different ground truth"):
        metric.merge([own.emptied().to_bytes()])
    with pytest.raises(lvdet.InputError, match="which has the classes"):
        own.emptied().partial().evaluate(gt)


def test_torch_is_not_loaded() -> None:
    code = "import lvdet, sys; lvdet.DetectionMetric().compute(); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memory_does_not_grow_with_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection_metric, "IMAGES", 128)
    metric = bounded_metric()
    tracemalloc.start()
    update_often(metric, range(1_000), 500)
    first = tracemalloc.get_traced_memory()[1]
    update_often(metric, range(1_000, 3_000), 500)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert metric.repeated == 2_500
    assert most < 1.1 * first


@pytest.mark.long
@pytest.mark.parametrize(("images", "per_image"), [(5_000, 0), (10**9, 240)])
def test_memory_of_a_million_updates_is_flat(images: int, per_image: int) -> None:
    """Of images that come again and again, and of new ones: what grows then is what tells images
    apart, and the number of objects of each: 72 bytes per image, three times that while parts are
    joined."""
    script = Path(__file__).with_name("update_stream.py")
    command = [sys.executable, str(script), "1000000", str(images)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    first, most = map(int, run.stdout.split())
    assert most - first < 0.1 * first + 750_000 * per_image
