"""The loss of an objectness predictor: object or background, whatever the class."""

from __future__ import annotations

import torch
from torch import Tensor

from lvdet.training.losses.sigmoid import binary_cross_entropy


def objectness_loss(logit: Tensor, label: Tensor, classes: int, count: Tensor) -> Tensor:
    """Binary cross-entropy of [..., n] logits, 1 on samples of any of the classes, summed, / count
    (a number, or one of each row)."""
    foreground = (label >= 0) & (label < classes)
    loss = binary_cross_entropy(logit, foreground)
    return (torch.where(label >= 0, loss, 0) / count).sum()
