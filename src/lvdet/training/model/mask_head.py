"""Masks of boxes, each of one class."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.detection.mask_rcnn import MaskRCNNHeads, MaskRCNNPredictor
from torchvision.ops import roi_align

from lvdet.training.data.batch import Objects
from lvdet.training.model.bias import fuse_biases, rectified_transposed
from lvdet.training.model.pooling import pool
from lvdet.training.model.recipe import Recipe

#: Sides of the pooled features, and of the masks.
POOLED, SIDE = 14, 28


class MaskHead(nn.Module):
    """Four convolutions, a transposed one, and a filter a class of which one is applied."""

    def __init__(self, channels: int, width: int, classes: int, recipe: Recipe) -> None:
        super().__init__()
        self.recipe = recipe
        self.layers = MaskRCNNHeads(channels, (width,) * 4, 1)
        self.predictor = MaskRCNNPredictor(width, width, classes)
        for layer in [*self.layers.modules(), self.predictor.conv5_mask]:  # as in Detectron2
            if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):  # (c2_msra_fill)
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
                assert layer.bias is not None
                nn.init.zeros_(layer.bias)
        fuse_biases(self.layers)
        nn.init.normal_(self.predictor.mask_fcn_logits.weight, std=0.001)
        nn.init.zeros_(self.predictor.mask_fcn_logits.bias)

    def logits(self, levels: list[Tensor], image: Tensor, box: Tensor, label: Tensor) -> Tensor:
        """[N, 28, 28] of [N, 4] boxes in images [N] of classes [N].

        Only a box's own class is computed: with 1,203 classes the others would be most of the work
        and of the memory.
        """
        pooled = pool(
            levels, image, box, POOLED, samples=self.recipe.samples, aligned=self.recipe.aligned
        )
        last = self.predictor.mask_fcn_logits
        if last.weight.is_contiguous(memory_format=torch.channels_last):
            pooled = pooled.contiguous(memory_format=torch.channels_last)
        features = rectified_transposed(self.predictor.conv5_mask, self.layers(pooled))
        filters = functional.embedding(label, last.weight.flatten(1))
        bias = functional.embedding(label, last.bias[:, None])
        pixels = features.flatten(2).transpose(1, 2)
        logits = torch.bmm(pixels, filters[:, :, None]).squeeze(2).float() + bias
        return logits.view(-1, SIDE, SIDE)

    def loss(self, logits: Tensor, box: Tensor, objects: Objects, number: Tensor) -> Tensor:
        """[P] mean cross-entropy of each mask; number: [P] rows of all objects of the batch."""
        with torch.no_grad(), torch.autocast(logits.device.type, enabled=False):
            goal = mask_targets(objects, number, box, self.recipe)
        losses = functional.binary_cross_entropy_with_logits(logits, goal, reduction="none")
        return losses.flatten(1).mean(dim=1)


def mask_targets(objects: Objects, number: Tensor, box: Tensor, recipe: Recipe) -> Tensor:
    """[P, 28, 28] the masks of objects within [P, 4] boxes, from 0 to 1 (or 0 and 1 only)."""
    tiles = functional.pad(objects.tile.flatten(0, 1), (1, 1, 1, 1))[:, None].float()
    x0, y0, sx, sy = objects.frame.flatten(0, 1)[number].unbind(1)
    corner, scale = torch.stack([x0, y0] * 2, dim=1), torch.stack([sx, sy] * 2, dim=1)
    rois = torch.cat([number[:, None].to(box.dtype), (box - corner) * scale + 1.0], dim=1)
    goal: Tensor = roi_align(tiles, rois, SIDE, 1.0, -1, recipe.aligned).squeeze(1)
    return (goal >= 0.5).float() if recipe.hard_masks else goal
