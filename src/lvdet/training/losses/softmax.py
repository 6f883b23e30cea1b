"""Softmax cross-entropy: one of K classes or background, which is the last."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from lvdet.training.losses.class_loss import ClassLoss


def softmax_loss(logits: Tensor, label: Tensor, count: Tensor) -> Tensor:
    """-log softmax(logits)[label], summed over the samples, / count; logits are [N, K + 1]."""
    return functional.cross_entropy(logits, label, ignore_index=-1, reduction="sum") / count


class Softmax(ClassLoss):
    temperature = 20.0

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.outputs = classes + 1

    def loss(self, logits: Tensor, label: Tensor, count: Tensor, seed: Tensor) -> Tensor:
        return softmax_loss(logits, label, count)

    def scores(self, logits: Tensor) -> Tensor:
        return torch.softmax(logits, dim=1)[:, :-1]
