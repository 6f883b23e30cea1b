"""Equalization loss (Tan et al. 2020): objects of other classes do not push rare classes down."""

from __future__ import annotations

import torch
from torch import Tensor

from lvdet.training.losses.class_loss import ClassLoss
from lvdet.training.losses.sigmoid import binary_cross_entropy, hits, log_odds

#: The initial score of all classes, as in the authors' training on LVIS.
PRIOR = 0.001


def equalization_loss(logits: Tensor, label: Tensor, rare: Tensor, count: Tensor) -> Tensor:
    """Binary cross-entropy weighted w = 1 - E T (1 - y), summed over samples and classes, / count.

    E is 1 on foreground samples, T on the rare classes ([K] bool), y on a sample's own class; so
    background still pushes all classes down. Logits are [N, K].
    """
    classes = logits.shape[1]
    hit = hits(label, classes)
    foreground = (label >= 0) & (label < classes)
    spared = foreground[:, None] & rare & ~hit
    loss = binary_cross_entropy(logits, hit).masked_fill(spared, 0)
    return torch.where(label >= 0, loss.sum(dim=1), 0).sum() / count


class Equalization(ClassLoss):
    """`rare`: [K] bool, the classes in a smaller fraction than λ of the training images that have
    annotations."""

    rare: Tensor
    bias = log_odds(PRIOR)
    temperature = 50.0

    def __init__(self, rare: Tensor) -> None:
        super().__init__()
        self.outputs = len(rare)
        self.register_buffer("rare", rare, persistent=False)

    def loss(self, logits: Tensor, label: Tensor, count: Tensor, seed: Tensor) -> Tensor:
        return equalization_loss(logits, label, self.rare, count)

    def scores(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits)
