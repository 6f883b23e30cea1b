"""One stage of the box head: box features, their classes, and refined boxes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.detection.faster_rcnn import TwoMLPHead

from lvdet.training.model.boxes import Weights, decode, encode
from lvdet.training.model.classifier import Classifier
from lvdet.training.model.pooling import pool
from lvdet.training.model.proposals import box_distance
from lvdet.training.model.recipe import Recipe

SIDE = 7


class BoxStage(nn.Module):
    """Pools features, classifies them, and refines their boxes.

    classes: the number of classes with their own boxes; 1: all classes share a box
    share:   the fraction of the gradient that reaches the features, 1 over the number of stages
    """

    def __init__(
        self,
        channels: int,
        hidden: int,
        classifier: Classifier,
        classes: int,
        weights: Weights,
        share: float,
        recipe: Recipe,
    ) -> None:
        super().__init__()
        self.recipe, self.weights, self.share, self.classes = recipe, weights, share, classes
        self.mlp = TwoMLPHead(channels * SIDE**2, hidden)
        self.classifier = classifier
        self.mover = nn.Linear(hidden, 4 * classes)
        for layer in (self.mlp.fc6, self.mlp.fc7):  # as in Detectron2 (c2_xavier_fill)
            nn.init.kaiming_uniform_(layer.weight, a=1)
            nn.init.zeros_(layer.bias)
        nn.init.normal_(self.mover.weight, std=0.001)
        nn.init.zeros_(self.mover.bias)

    def features(self, levels: list[Tensor], image: Tensor, box: Tensor) -> Tensor:
        """[N, hidden] of [N, 4] boxes in images [N]."""
        pooled = pool(
            levels, image, box, SIDE, samples=self.recipe.samples, aligned=self.recipe.aligned
        )
        if self.share < 1 and pooled.requires_grad:
            share = self.share
            pooled.register_hook(lambda gradient: gradient * share)  # type: ignore[no-untyped-call]
        if pooled.is_contiguous():
            hidden: Tensor = self.mlp(pooled)
            return hidden
        # Channels last: the weights are put in that order, which are fewer than the features.
        first = self.mlp.fc6
        weight = first.weight.to(pooled.dtype).view(len(first.weight), -1, SIDE**2)
        flat = pooled.permute(0, 2, 3, 1).flatten(1)
        below = functional.linear(flat, weight.transpose(1, 2).flatten(1), first.bias).relu()
        return functional.relu(self.mlp.fc7(below))

    def box_loss(
        self, hidden: Tensor, box: Tensor, target: Tensor, label: Tensor, weight: Tensor
    ) -> Tensor:
        """The sum over [P] foreground boxes of the distance to their targets.

        label: [P] class rows; weight: [P] 0 where a row is none
        """
        goal = encode(target, box, self.weights)
        distance = box_distance(self._codes(hidden, label), goal, self.recipe.box_beta)
        return (distance * weight).sum()

    def _codes(self, hidden: Tensor, label: Tensor) -> Tensor:
        """[P, 4] the codes of one class each: those of the other classes are not computed."""
        if self.classes == 1:
            codes: Tensor = self.mover(hidden)
            return codes
        width = hidden.shape[1]
        weight = functional.embedding(label, self.mover.weight.view(self.classes, 4 * width))
        bias = functional.embedding(label, self.mover.bias.view(self.classes, 4))
        codes = torch.bmm(weight.view(-1, 4, width), hidden[:, :, None]).squeeze(2)
        return codes.float() + bias

    def moved(self, hidden: Tensor, box: Tensor) -> Tensor:
        """[N, classes, 4] the refined boxes of each class, from [N, 4] boxes."""
        codes = self.mover(hidden).float().view(len(hidden), self.classes, 4)
        return decode(codes, box[:, None], self.weights)
