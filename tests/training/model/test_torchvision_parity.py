"""The losses and gradients of torchvision's Mask R-CNN, image by image, are ours."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lvdet.training.configuration.config import Config, Model
from lvdet.training.model.build import build_detector
from lvdet.training.model.classifier import Frequencies
from lvdet.training.model.recipe import TORCHVISION
from training.model.random_batch import random_batch
from training.model.torchvision_twin import twin

ANCHORS = (16, 32, 64, 128, 256)
#: So many that all are taken: then nothing is random.
ALL = 1_000_000
NAMES = {
    "rpn_objectness": "loss_objectness",
    "rpn_box": "loss_rpn_box_reg",
    "class": "loss_classifier",
    "box": "loss_box_reg",
    "mask": "loss_mask",
}


@pytest.mark.parametrize("seed", range(3))
def test_losses_and_gradients(seed: int) -> None:
    torch.manual_seed(seed)
    classes = 7
    model = Model(backbone="tiny", weights="none", norm="group", anchors=ANCHORS)
    counts = np.full(classes, 5, dtype=np.int64)
    detector = build_detector(
        Config(model=model),
        Frequencies(10, counts, counts),
        recipe=replace(
            TORCHVISION,
            anchors_sampled=ALL,
            boxes_sampled=ALL,
            pre_nms=(300, 300),
            post_nms=(200, 200),
        ),
    )
    with torch.no_grad():  # nothing is as good as another, nothing is 0
        for parameter in detector.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
    theirs = twin(
        detector,
        ANCHORS,
        min_size=128,
        max_size=1000,
        rpn_batch_size_per_image=ALL,
        box_batch_size_per_image=ALL,
        rpn_pre_nms_top_n_train=300,
        rpn_post_nms_top_n_train=200,
    )
    batch, images, targets = random_batch(seed, classes=classes)
    detector.train()
    ours = detector(batch)
    expected = theirs.train()(images, targets)
    assert set(ours) == set(NAMES)
    for name, value in ours.items():
        torch.testing.assert_close(value, expected[NAMES[name]], rtol=1e-4, atol=1e-5)
    shared = [*detector.backbone.parameters(), *detector.proposals.parameters()]
    one, other = (
        torch.cat([g.flatten() for g in torch.autograd.grad(sum(losses.values()), shared)])
        for losses in (ours, expected)
    )
    assert (one - other).norm() < 0.005 * other.norm()
