"""Federated loss (Zhou et al. 2021): only the classes that are present, and some that are drawn.

Each group of images has classes of its own, as each GPU has in the authors' code. With LVIS two
images hold about 7 classes, and 43 of 50 are drawn; a batch of 16 holds about 52, and none would
be.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lvdet.training.losses.class_loss import ClassLoss, group_counts, in_groups
from lvdet.training.losses.sigmoid import PRIOR, binary_cross_entropy, hits, log_odds
from lvdet.training.model.draws import CLASSES, uniform

#: Classes are drawn with chances in proportion to image_count to this power.
POWER = 0.5


def draw_classes(present: Tensor, weight: Tensor, size: int, random: Tensor) -> Tensor:
    """[G, K] bool: each row's present classes, filled up to `size` with classes drawn without
    replacement, by [G, K] random numbers in [0, 1).

    Chances are in proportion to `weight` ([K]) among those not drawn yet; a weight of 0 is never
    drawn. More than `size` present classes stay all, and too few to fill up with are all there are.
    """
    # Times of arrival at rates `weight`: the first to arrive are such a draw (an exponential race).
    arrival = -torch.log1p(-random) / weight
    arrival = torch.where(weight > 0, arrival, torch.inf).masked_fill(present, -1)
    first, where = arrival.topk(min(size, len(weight)), dim=1, largest=False)
    return present.scatter(1, where, first < torch.inf)


def group_draws(seed: Tensor, groups: int, classes: int) -> Tensor:
    """[G, K] random numbers that depend only on the images of each group ([B] seeds)."""
    return uniform(in_groups(seed, groups).sum(dim=1), classes, CLASSES)


def federated_loss(
    logits: Tensor, label: Tensor, weight: Tensor, size: int, random: Tensor
) -> Tensor:
    """The mean over groups of the binary cross-entropy summed over a group's samples and classes,
    / its samples.

    Background samples count, for the same classes. Logits are [N, K], weights [K], random [G, K].
    """
    groups, classes = random.shape
    hit = in_groups(hits(label, classes), groups)
    chosen = draw_classes(hit.any(dim=1), weight, size, random)
    loss = binary_cross_entropy(in_groups(logits, groups), hit)
    counts = chosen[:, None] & (in_groups(label, groups) >= 0)[:, :, None]
    total = torch.where(counts, loss, 0).sum(dim=(1, 2))
    return (total / group_counts(label, groups).squeeze(1)).mean()


class Federated(ClassLoss):
    """`image_count`: [K] training images with each class; `size`: |S|."""

    weight: Tensor
    bias = log_odds(PRIOR)
    temperature = 50.0

    def __init__(self, image_count: Tensor, size: int, group_images: int) -> None:
        super().__init__()
        self.outputs = len(image_count)
        self.size = size
        self.group_images = group_images
        self.register_buffer("weight", image_count.float() ** POWER, persistent=False)

    def loss(self, logits: Tensor, label: Tensor, count: Tensor, seed: Tensor) -> Tensor:
        random = group_draws(seed, self.groups(len(seed)), self.outputs)
        return federated_loss(logits, label, self.weight, self.size, random)

    def scores(self, logits: Tensor) -> Tensor:
        return torch.sigmoid(logits)
