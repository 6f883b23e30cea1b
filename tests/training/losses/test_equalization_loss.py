"""Equalization loss: which entries are spared."""

from __future__ import annotations

import numpy as np
import torch

from lvdet.training.configuration import config
from lvdet.training.losses.equalization import equalization_loss
from lvdet.training.losses.sigmoid import sigmoid_loss
from lvdet.training.model.classifier import Frequencies, build_classifier

LABEL = torch.tensor([0, 1, 3, -1])
RARE = torch.tensor([False, True, True])


def test_only_other_classes_objects_spare_the_rare() -> None:
    logits = torch.randn(4, 3, generator=torch.manual_seed(0)).requires_grad_()
    equalization_loss(logits, LABEL, RARE, torch.tensor(3.0)).backward()
    assert (logits.grad != 0).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
        [False, False, False],
    ]
    assert (logits.grad < 0).nonzero().tolist() == [[0, 0], [1, 1]]


def test_without_rare_classes_it_is_binary_cross_entropy() -> None:
    logits = torch.randn(4, 3, generator=torch.manual_seed(0))
    count = torch.tensor(3.0)
    loss = equalization_loss(logits, LABEL, torch.zeros(3, dtype=torch.bool), count)
    assert loss == sigmoid_loss(logits, LABEL, count)


def test_rare_is_below_the_fraction() -> None:
    """1/1000 itself is not; a class without images is."""
    images = np.array([0, 99, 100, 101], dtype=np.int64)
    classifier = build_classifier(
        config.Classifier(loss="equalization", rarer_than=1e-3),
        4,
        Frequencies(100_000, images, images),
    )
    assert classifier.of_classes.rare.tolist() == [True, True, False, False]
