"""The torchmetrics metric beside torchmetrics' own, and beside files."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_images import random_images
from torchmetrics import MetricCollection
from torchmetrics.detection import MeanAveragePrecision as TorchMetrics

import lvdet
from loop_images import in_order, loop_images
from lvdet.evaluation.average_precision import RECALLS
from lvdet.integrations.torchmetrics import Backend, MeanAveragePrecision, use_lvdet
from lvdet.matching.match_options import IOU_THRESHOLDS
from oracles.cases import lvis_case
from tabled import read_case

#: torchmetrics rounds its own to 32 bits, which changes numbers in the fourth digit.
LEVELS, RECALL_LEVELS = IOU_THRESHOLDS.tolist(), RECALLS.tolist()


def without_ids(targets: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: one[key] for key in one if key != "image_id"} for one in targets]


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        assert found[name].dtype == value.dtype, name
        assert torch.allclose(found[name], value, rtol=0, atol=1e-6), name


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("iou", ["bbox", "segm", ("bbox", "segm")])
def test_fields_are_those_of_torchmetrics(seed: int, iou: Any) -> None:
    # Where there are only masks, torchmetrics leaves out images without objects, and with them
    # what a detector finds there.
    predictions, targets = random_images(seed, masks=iou != "bbox", fewest=iou == "segm")
    arguments: dict[str, Any] = {
        "iou_type": iou,
        "iou_thresholds": LEVELS if seed % 2 else [0.5, 0.75],
        "max_detection_thresholds": [2, 5, 100],
        "class_metrics": True,
    }
    ours = MeanAveragePrecision(**arguments)
    theirs = TorchMetrics(**arguments, rec_thresholds=RECALL_LEVELS)
    drop_in = use_lvdet(TorchMetrics(**arguments, rec_thresholds=RECALL_LEVELS))
    for begin in range(0, len(targets), 5):
        batch = slice(begin, begin + 5)
        ours.update(predictions[batch], targets[batch])
        for other in (theirs, drop_in):
            other.update(predictions[batch], without_ids(targets[batch]))
    expected = theirs.compute()
    assert_same(ours.compute(), expected)
    assert_same(drop_in.compute(), expected)
    assert set(expected) <= set(ours.compute())


@pytest.mark.parametrize("box_format", ["xyxy", "xywh", "cxcywh"])
def test_box_formats_are_those_of_torchmetrics(box_format: str) -> None:
    predictions, targets = random_images(7)
    ours = MeanAveragePrecision(box_format, iou_thresholds=LEVELS)
    theirs = TorchMetrics(box_format, iou_thresholds=LEVELS, rec_thresholds=RECALL_LEVELS)
    ours.update(predictions, targets)
    theirs.update(predictions, without_ids(targets))
    expected = theirs.compute()
    del expected["classes"]
    assert_same(ours.compute(), expected)


def test_fixed_and_pool_are_those_of_a_file(tmp_path: Path) -> None:
    gt, dt = read_case(*lvis_case(21, False, quirks=False), tmp_path)
    dt = in_order(dt)
    images = list(loop_images(gt, dt))
    predictions, targets = zip(*images, strict=True)
    by_gt = MeanAveragePrecision("xywh", gt=tmp_path / "gt.json", dets_per_class=9)
    by_gt.update(predictions, [{"image_id": one["image_id"]} for one in targets])
    by_targets = MeanAveragePrecision(
        "xywh", categories=gt.categories, federated=True, dets_per_class=9
    )
    by_targets.update(predictions, targets)
    expected = lvdet.evaluate(gt, dt, dets_per_class=9)
    for metric in (by_gt, by_targets):
        found = metric.compute()
        for prefix, name in (("", "old"), ("fixed_", "fixed"), ("pool_", "pool")):
            for key, column in (("map", "AP"), ("map_50", "AP50"), ("map_rare", "APr")):
                value = expected[name][column]
                value = -1 if np.isnan(value) else value
                assert found[prefix + key].item() == pytest.approx(value, abs=1e-6)
        assert found["mar_300"].item() == pytest.approx(expected["old"].AR, abs=1e-6)
        evaluation = metric.evaluations["bbox"]
        assert evaluation.to_dict()["protocols"] == expected.to_dict()["protocols"]


def test_everything_can_be_logged() -> None:
    predictions, targets = random_images(3)
    metric = MeanAveragePrecision()
    metric.update(predictions, targets)
    assert all(value.ndim == 0 for value in metric.compute().values())


def test_forward_is_of_the_batch_and_keeps_the_rest() -> None:
    predictions, targets = random_images(5)
    metric, alone = MeanAveragePrecision(), MeanAveragePrecision()
    metric.update(predictions[:6], targets[:6])
    batch = metric(predictions[6:], targets[6:])
    alone.update(predictions[6:], targets[6:])
    assert_same(batch, alone.compute())
    alone.reset()
    alone.update(predictions, targets)
    assert_same(metric.compute(), alone.compute())
    assert metric.compute()["images"] == len(targets)
    metric.reset()
    assert metric.update_count == 0
    with pytest.warns(UserWarning, match="before the ``update`` method"):
        assert metric.compute()["map"] == -1


def test_copies_pickles_and_collections_are_independent() -> None:
    predictions, targets = random_images(6)
    metric = MeanAveragePrecision()
    metric.update(predictions[:4], targets[:4])
    for other in (metric.clone(), pickle.loads(pickle.dumps(metric))):
        other.update(predictions[4:], targets[4:])
        assert other.compute()["images"] == len(targets)
    assert metric.compute()["images"] == 4
    rest = MeanAveragePrecision()
    rest.update(predictions[3:], targets[3:])
    metric.merge_state(rest)
    whole = MeanAveragePrecision()
    whole.update(predictions, targets)
    merged = metric.compute()
    assert merged.pop("repeated_images") == 1
    assert_same(whole.compute(), merged)
    both = MetricCollection(
        {"few": MeanAveragePrecision(max_detection_thresholds=[1, 2, 3]), "many": whole.clone()}
    )
    both.reset()
    both.update(predictions, targets)
    found = both.compute()
    assert found["many_map"] == whole.compute()["map"]
    assert found["few_map"] != found["many_map"]


def test_a_double_image_counts_once_and_is_reported() -> None:
    predictions, targets = random_images(8)
    once, twice = MeanAveragePrecision(), MeanAveragePrecision()
    once.update(predictions, targets)
    twice.update([*predictions, predictions[2]], [*targets, targets[2]])
    found = twice.compute()
    assert found.pop("repeated_images") == 1
    assert_same(once.compute(), found)
    assert "1 image was given again (first image_id 2)" in twice.evaluations["bbox"].warnings[-1]


def test_two_processes_equal_one() -> None:
    """Over gloo on this machine: unequal shards, an image in both, and a process without any."""
    script = Path(__file__).with_name("two_processes.py")
    run = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == {"unequal": 12, "doubled": 12, "empty": 12}


@pytest.mark.parametrize(
    "arguments",
    [
        {"rec_thresholds": [0.5]},
        {"extended_summary": True},
        {"average": "micro"},
        {"iou_type": "keypoints"},
        {"iou_type": ()},
        {"box_format": "no"},
        {"max_detection_thresholds": [-1]},
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any]) -> None:
    with pytest.raises(lvdet.InputError):
        MeanAveragePrecision(**arguments)


def test_the_backend_is_what_torchmetrics_looks_up() -> None:
    backend = Backend()
    assert backend.coco.__module__.startswith("lvdet.")
    assert backend.cocoeval.__module__.startswith("lvdet.")
    assert backend.mask_utils.__name__.startswith("lvdet.")
    with pytest.raises(lvdet.InputError, match="int has no COCO backend"):
        use_lvdet(5)


def test_without_torch_one_line_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "try: import lvdet.integrations.torchmetrics\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == (
        "lvdet.integrations.torchmetrics needs torch: pip install 'torchmetrics>=1.8'\n"
    )
