"""The region proposal network, for all images at once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.rpn import RPNHead

from lvdet.training.data.batch import Batch, Objects
from lvdet.training.loop.processes import mean_over_processes
from lvdet.training.model.bias import fuse_biases
from lvdet.training.model.boxes import clip, decode, encode, is_box
from lvdet.training.model.draws import ANCHORS, uniform
from lvdet.training.model.nms import survivors
from lvdet.training.model.recipe import Recipe
from lvdet.training.model.sampling import Matched, Sampled, match, sample, taken

_RATIOS = (0.5, 1.0, 2.0)
#: Sizes of images whose anchors are kept.
_KEPT = 32
_WEIGHTS = (1.0, 1.0, 1.0, 1.0)


class Proposals(NamedTuple):
    """[B, R, 4] boxes of each image by descending score, and [B, R] which places are taken."""

    box: Tensor
    there: Tensor


class ProposalNetwork(nn.Module):
    """Objectness and boxes from anchors, and the best of them after suppression."""

    def __init__(self, channels: int, sizes: tuple[int, ...], recipe: Recipe) -> None:
        super().__init__()
        self.recipe = recipe
        self.head = RPNHead(channels, len(_RATIOS))
        fuse_biases(self.head.conv)
        self._generator = AnchorGenerator(tuple((s,) for s in sizes), (_RATIOS,) * len(sizes))
        if not recipe.whole_anchors:
            self._generator.cell_anchors = [_exact_anchors(side) for side in sizes]
        self._made: dict[tuple[object, ...], list[Tensor]] = {}

    def forward(
        self, pyramid: list[Tensor], batch: Batch, count: Tensor | None = None
    ) -> tuple[Proposals, dict[str, Tensor]]:
        """Proposals, and the losses where the objects are known.

        count: anchors to divide by; without it those sampled, as a mean over processes
        """
        scores, codes = self._predicted(pyramid)
        anchors = self.anchors(pyramid)
        with torch.no_grad():
            found = self._best(scores, codes, anchors, batch.size)
        if batch.objects is None or not self.training:
            return found, {}
        losses = self._losses(scores, codes, anchors, batch.objects, batch.seed, count)
        return found, losses

    def _predicted(self, pyramid: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """[B, A] objectness and [B, A, 4] codes of each level.

        Both are one convolution. Its outputs are filled up to a multiple of 8, as matrix units
        take them.
        """
        last = self.head.cls_logits, self.head.bbox_pred
        number = len(_RATIOS)
        spare = -5 * number % 8
        weight = functional.pad(torch.cat([conv.weight for conv in last]), (0,) * 7 + (spare,))
        bias = functional.pad(torch.cat([conv.bias for conv in last]), (0, spare))
        scores, codes = [], []
        for level in pyramid:
            found = functional.conv2d(self.head.conv(level), weight, bias).float()
            scores.append(_flat(found[:, :number], 1).squeeze(2))
            codes.append(_flat(found[:, number : 5 * number], 4))
        return scores, codes

    def anchors_sampled(self, pyramid: list[Tensor], objects: Objects, seed: Tensor) -> Tensor:
        """Scalar, the number of anchors that the losses cover."""
        return self._sampled(torch.cat(self.anchors(pyramid))[None], objects, seed)[1].taken.sum()

    def _sampled(self, anchor: Tensor, objects: Objects, seed: Tensor) -> tuple[Matched, Sampled]:
        """[1, A, 4] anchors matched to objects, and the samples to train on."""
        recipe = self.recipe
        matched = match(
            anchor,
            objects.box,
            objects.label >= 0,
            foreground=recipe.anchor_foreground,
            background=recipe.anchor_background,
            best_of_object=True,
        )
        random = uniform(seed, anchor.shape[1], ANCHORS)
        share = recipe.anchors_foreground_share
        return matched, sample(matched.kind, random, recipe.anchors_sampled, share)

    def anchors(self, pyramid: list[Tensor]) -> list[Tensor]:
        """The anchors of each level, [A, 4]: 4, 8, 16, … pixels apart."""
        grids = [tuple(level.shape[-2:]) for level in pyramid]
        key = (*grids, pyramid[0].device)
        if key not in self._made:
            if len(self._made) >= _KEPT:
                self._made.clear()
            strides = [[4 << number] * 2 for number in range(len(grids))]
            self._generator.set_cell_anchors(torch.float32, pyramid[0].device)
            self._made[key] = self._generator.grid_anchors(grids, strides)
        return self._made[key]

    def _best(
        self, scores: list[Tensor], codes: list[Tensor], anchors: list[Tensor], size: Tensor
    ) -> Proposals:
        phase = 0 if self.training else 1
        most = max(min(self.recipe.pre_nms[phase], level.shape[1]) for level in scores)
        boxes, logits = [], []
        for score, code, anchor in zip(scores, codes, anchors, strict=True):
            best = score.topk(min(self.recipe.pre_nms[phase], score.shape[1]), dim=1)
            box = decode(taken(code, best.indices), anchor[best.indices], _WEIGHTS)
            spare = most - box.shape[1]
            boxes.append(functional.pad(clip(box, size), (0, 0, 0, spare)))
            logits.append(functional.pad(best.values, (0, spare), value=-torch.inf))
        box, logit = torch.stack(boxes, dim=1), torch.stack(logits, dim=1)
        there = is_box(box)
        kept = survivors(box.flatten(0, 1), there.flatten(0, 1), self.recipe.proposal_nms)
        logit = logit.masked_fill(~kept.view_as(there), -torch.inf).flatten(1)
        best = logit.topk(min(self.recipe.post_nms[phase], logit.shape[1]), dim=1)
        return Proposals(taken(box.flatten(1, 2), best.indices), best.values > -torch.inf)

    def _losses(
        self,
        scores: list[Tensor],
        codes: list[Tensor],
        anchors: list[Tensor],
        objects: Objects,
        seed: Tensor,
        count: Tensor | None,
    ) -> dict[str, Tensor]:
        score, code = torch.cat(scores, dim=1), torch.cat(codes, dim=1)
        with torch.no_grad():
            anchor = torch.cat(anchors)[None]
            matched, chosen = self._sampled(anchor, objects, seed)
            target = taken(objects.box, taken(matched.object, chosen.place))
            goal = encode(target, taken(anchor, chosen.place), _WEIGHTS)
            if count is None:
                count = mean_over_processes(chosen.taken.sum().float()).clamp(min=1)
        objectness = functional.binary_cross_entropy_with_logits(
            taken(score, chosen.place),
            chosen.foreground.float(),
            weight=chosen.taken.float(),
            reduction="sum",
        )
        distance = box_distance(taken(code, chosen.place), goal, self.recipe.box_beta)
        return {
            "rpn_objectness": objectness / count,
            "rpn_box": (distance * chosen.foreground).sum() / count,
        }


def _exact_anchors(side: int) -> Tensor:
    """[3, 4] anchors around 0 of a side squared pixels, one for each ratio of height to width."""
    ratio = torch.tensor(_RATIOS, dtype=torch.float64)
    width = side / ratio.sqrt()
    half = torch.stack([width, width * ratio], dim=1) / 2
    return torch.cat([-half, half], dim=1).float()


def box_distance(code: Tensor, goal: Tensor, beta: float) -> Tensor:
    """[...] smooth L1 distance of [..., 4] codes; L1 where beta is 0."""
    return functional.smooth_l1_loss(code.float(), goal, beta=beta, reduction="none").sum(-1)


def _flat(level: Tensor, numbers: int) -> Tensor:
    """[B, A, numbers] of a map, in the order of the anchors."""
    return level.permute(0, 2, 3, 1).reshape(len(level), -1, numbers)
