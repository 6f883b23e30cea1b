"""Balanced group softmax (BaGS, Li et al. 2020): classes compete with others as frequent.

Each group of classes is a softmax with a slot for all others. Group 0, background against
foreground, is the predictor of objectness that other losses can have besides: the paper calls
them the same. It has one logit and a sigmoid where Li et al. have a softmax over two, which is the
same function of their difference. Scores are P(foreground) times the softmax within the group.

Means are taken over fixed groups of images, as the authors' code takes them over each GPU's, and
are 0 where such a group has no object of a group of classes. One mean over the batch would weigh
the rarest classes several times as much.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from lvdet.training.losses.class_loss import ClassLoss
from lvdet.training.model.draws import CLASSES, uniform

#: A class is in the first group whose bound is above its training instances; in the last without.
BOUNDS = (10, 100, 1000)


@dataclass(frozen=True)
class Layout:
    """Where the slots of G groups are among the logits; groups without classes have none.

    sizes:  [G] slots, "others" being the first of each group
    slot:   [G, K + 2] int64, the slot of label l in each group at column l + 1; 0 is "others"
    column: [K] int64, the logit of each class
    """

    sizes: list[int]
    slot: Tensor
    column: Tensor


def lay_out(instance_count: Tensor) -> Layout:
    """The groups of [K] classes by their training instances; within a group classes keep order."""
    group = torch.bucketize(instance_count, torch.tensor(BOUNDS), right=True)
    members = [m for g in range(len(BOUNDS) + 1) if len(m := (group == g).nonzero()[:, 0])]
    slot = torch.zeros(len(members), len(group) + 2, dtype=torch.int64)
    column = torch.zeros_like(group)
    begin = 0
    for row, member in zip(slot, members, strict=True):
        places = torch.arange(1, len(member) + 1)
        row[member + 1] = places
        column[member] = begin + places
        begin += len(member) + 1
    return Layout([len(member) + 1 for member in members], slot, column)


def choose_samples(own: Tensor, sample: Tensor, ratio: float, random: Tensor) -> Tensor:
    """[..., N] bool: the own samples and floor(ratio * their number) random ones of the others.

    own:    [..., N] bool, the foreground of a group of classes
    sample: [..., N] bool, the rows that are samples at all
    random: [..., N] in [0, 1)

    If there are fewer others, all are taken; without own samples, none.
    """
    other = sample & ~own
    rank = random.masked_fill(~other, 2).argsort(dim=-1).argsort(dim=-1)
    wanted = torch.floor(ratio * own.sum(dim=-1, keepdim=True).double())
    return own | (other & (rank < wanted))


def row_draws(seed: Tensor, rows: int, parts: int) -> Tensor:
    """[parts, N] random numbers of N rows; those of an image's rows depend on it alone."""
    images = len(seed)
    random = uniform(seed, rows // images * parts, CLASSES)
    return random.view(images, -1, parts).movedim(2, 0).flatten(1)


def balanced_groups_loss(
    logits: Tensor,
    label: Tensor,
    sizes: list[int],
    slot: Tensor,
    ratio: float,
    random: Tensor,
    image_groups: int,
) -> Tensor:
    """The sum over groups of classes of the mean over groups of images of the mean cross-entropy
    over the samples chosen there; of none it is 0.

    Logits are [N, K + G], `sizes` and `slot` a Layout's, random [G, N].
    """
    target = slot[:, label + 1]

    def parted(rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:-1], image_groups, len(label) // image_groups)

    chosen = choose_samples(parted(target > 0), parted(label >= 0), ratio, parted(random))
    losses = torch.stack(
        [
            functional.cross_entropy(part, of_group, reduction="none")
            for part, of_group in zip(torch.split(logits, sizes, dim=1), target, strict=True)
        ]
    )
    total = torch.where(chosen, parted(losses), 0).sum(dim=2)
    return (total / chosen.sum(dim=2).clamp(min=1)).mean(dim=1).sum()


class BalancedGroups(ClassLoss):
    """`instance_count`: [K] training instances of each class; `ratio`: β."""

    slot: Tensor
    column: Tensor
    temperature = 20.0
    needs_objectness = True

    def __init__(self, instance_count: Tensor, ratio: float, group_images: int) -> None:
        super().__init__()
        layout = lay_out(instance_count)
        self.sizes = layout.sizes
        self.ratio = ratio
        self.group_images = group_images
        self.outputs = sum(layout.sizes)
        self.register_buffer("slot", layout.slot, persistent=False)
        self.register_buffer("column", layout.column, persistent=False)

    def loss(self, logits: Tensor, label: Tensor, count: Tensor, seed: Tensor) -> Tensor:
        random = row_draws(seed, len(label), len(self.sizes))
        groups = self.groups(len(seed))
        return balanced_groups_loss(
            logits, label, self.sizes, self.slot, self.ratio, random, groups
        )

    def scores(self, logits: Tensor) -> Tensor:
        """[N, K] within the groups, as if all were foreground."""
        parts = [torch.softmax(part, dim=1) for part in torch.split(logits, self.sizes, dim=1)]
        return torch.cat(parts, dim=1).index_select(1, self.column)
