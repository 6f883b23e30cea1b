"""A batch in parts, one after another, is a batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from lvdet.errors import InputError
from lvdet.training.configuration.config import Classifier, Config, Model
from lvdet.training.configuration.config_file import read_config
from lvdet.training.loop.step import differentiate, losses_of
from lvdet.training.model.build import build_detector
from lvdet.training.model.classifier import Frequencies
from lvdet.training.model.detector import Detector
from lvdet.training.train import train
from training.model.random_batch import random_batch
from training.tiny_set import write_set


def made(loss: str, kind: str, norm: str = "group") -> Detector:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    counts = np.array([5, 50, 500, 5000, 5, 50, 500], dtype=np.int64)
    model = Model(
        kind=kind, backbone="tiny", weights="none", norm=norm, anchors=(16, 32, 64, 128, 256)
    )
    head = Classifier(loss=loss, objectness=True, sampled_classes=5, others_ratio=1.0)
    config = Config(model=model, classifier=head)
    return build_detector(config, Frequencies(10_000, counts, counts)).train()


@pytest.mark.parametrize(
    ("loss", "kind"),
    [("softmax", "mask_rcnn"), ("federated", "mask_rcnn"), ("balanced_groups", "cascade_rcnn")],
)
def test_losses_and_gradients_are_those_of_the_whole(loss: str, kind: str) -> None:
    """One half has no objects: means of the halves' own means would be other losses."""
    batch = random_batch(2, images=4)[0]
    assert batch.objects is not None
    batch.objects.label[:2] = -1
    found = []
    for parts in (1, 2):
        detector = made(loss, kind)
        losses = differentiate(detector, detector, batch, "fp32", parts)
        found.append((losses, {name: p.grad for name, p in detector.named_parameters()}))
    (whole, slopes), (halves, others) = found
    for name, value in whole.items():
        torch.testing.assert_close(halves[name], value, rtol=1e-4, atol=1e-5, msg=name)
    for name, slope in slopes.items():
        assert slope is not None
        assert (others[name] - slope).norm() <= 1e-3 * slope.norm() + 1e-6, name
    detector = made(loss, kind)
    each = [losses_of(detector, part, "fp32") for part in batch.parts(2)]
    apart = sum(losses["mask"] for losses in each) / 2
    assert abs(apart - whole["mask"]) > 0.1 * whole["mask"]


def test_counting_leaves_statistics_as_they_are() -> None:
    batch = random_batch(2, images=2)[0]
    detector, counted = made("softmax", "mask_rcnn", "batch"), made("softmax", "mask_rcnn", "batch")
    for part in batch.parts(2):
        losses_of(detector, part, "fp32")
    differentiate(counted, counted, batch, "fp32", 2)
    for (name, one), other in zip(detector.named_buffers(), counted.buffers(), strict=True):
        if not name.endswith("num_batches_tracked"):
            torch.testing.assert_close(one, other, msg=name)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (["schedule.batch=3", "schedule.accumulate=2"], "the 1 processes times schedule.accumul"),
        (["schedule.batch=3", "classifier.loss=federated"], "3, 3 images at a time in each proc"),
        (
            ["schedule.batch=6", "schedule.accumulate=2", "classifier.loss=balanced_groups"],
            "not a multiple of classifier.group_images, 2",
        ),
    ],
)
def test_shares_that_are_not_whole(changes: list[str], says: str, tmp_path: Path) -> None:
    write_set(tmp_path)
    with pytest.raises(InputError, match=says):
        train(read_config(tmp_path / "tiny.toml", changes), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()
