"""Sigmoid binary cross-entropy: each class is independent, and background means none of them."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from lvdet.training.losses.class_loss import ClassLoss

#: The score that all classes begin with. RetinaNet's, which detectors for LVIS with sigmoids have
#: kept (CenterNet2, where the federated loss is from): at 0.5 the K classes that a sample is not
#: would make the first loss K log 2 and nothing else would be learnt until they are down.
PRIOR = 0.01


def log_odds(prior: float) -> float:
    """The bias at which a sigmoid gives `prior`."""
    return -math.log((1 - prior) / prior)


def hits(label: Tensor, classes: int) -> Tensor:
    """[N, K] bool: y, true where the class is the sample's."""
    return label[:, None] == torch.arange(classes, device=label.device)


def binary_cross_entropy(logits: Tensor, hit: Tensor) -> Tensor:
    """[N, K] -log(sigmoid(x)) where hit, -log(1 - sigmoid(x)) elsewhere, exact for any x."""
    return -functional.logsigmoid(torch.where(hit, logits, -logits))


def sigmoid_loss(logits: Tensor, label: Tensor, count: Tensor) -> Tensor:
    """Summed over samples and classes, / count; logits are [N, K]."""
    loss = binary_cross_entropy(logits, hits(label, logits.shape[1]))
    return torch.where(label >= 0, loss.sum(dim=1), 0).sum() / count


class Sigmoid(ClassLoss):
    bias = log_odds(PRIOR)
    temperature = 50.0

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.outputs = classes

    def loss(self, logits: Tensor, label: Tensor, count: Tensor, seed: Tensor) -> Tensor:
        return sigmoid_loss(logits, label, count)

    def scores(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits)
