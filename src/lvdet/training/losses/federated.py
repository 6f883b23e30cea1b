"""Federated loss (Zhou et al. 2021): only the classes that are present, and some that are drawn."""

from __future__ import annotations

import torch
from torch import Tensor

from lvdet.training.loop.processes import any_over_processes
from lvdet.training.losses.class_loss import ClassLoss
from lvdet.training.losses.sigmoid import PRIOR, binary_cross_entropy, hits, log_odds

#: Classes are drawn with chances in proportion to image_count to this power.
POWER = 0.5


def draw_classes(present: Tensor, weight: Tensor, size: int) -> Tensor:
    """[K] bool: the present classes, filled up to `size` with classes drawn without replacement.

    Chances are in proportion to `weight` among those not drawn yet; a weight of 0 is never drawn.
    More than `size` present classes stay all, and too few to fill up with are all there are.
    """
    # Times of arrival at rates `weight`: the first to arrive are such a draw (an exponential race).
    arrival = -torch.log1p(-torch.rand(weight.shape, device=weight.device)) / weight
    arrival = torch.where(weight > 0, arrival, torch.inf).masked_fill(present, -1)
    first, where = arrival.topk(min(size, len(arrival)), largest=False)
    return present.scatter(0, where, first < torch.inf)


def federated_loss(
    logits: Tensor, label: Tensor, weight: Tensor, size: int, count: Tensor
) -> Tensor:
    """Binary cross-entropy summed over samples and the classes of one draw, / count.

    Present are the classes of the labels of all processes, which draw the same others: the loop
    seeds them alike. Background samples count, for the same classes. Logits are [N, K], weights
    [K].
    """
    hit = hits(label, logits.shape[1])
    chosen = draw_classes(any_over_processes(hit.any(dim=0)), weight, size)
    loss = binary_cross_entropy(logits, hit).masked_fill(~chosen, 0)
    return torch.where(label >= 0, loss.sum(dim=1), 0).sum() / count


class Federated(ClassLoss):
    """`image_count`: [K] training images with each class; `size`: |S|."""

    weight: Tensor
    bias = log_odds(PRIOR)
    temperature = 50.0

    def __init__(self, image_count: Tensor, size: int) -> None:
        super().__init__()
        self.outputs = len(image_count)
        self.size = size
        self.register_buffer("weight", image_count.float() ** POWER, persistent=False)

    def loss(self, logits: Tensor, label: Tensor, count: Tensor) -> Tensor:
        return federated_loss(logits, label, self.weight, self.size, count)

    def scores(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits)
