"""Which boxes are foreground, and which are trained on."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lvdet.training.model.boxes import overlaps

#: Overlaps computed at a time, to bound memory use.
_PAIRS = 1 << 26


class Matched(NamedTuple):
    """[B, N] place of each box's object, and 1 for foreground, 0 for background, -1 for neither."""

    object: Tensor
    kind: Tensor


class Sampled(NamedTuple):
    """[B, S] places of boxes, foreground first; which are foreground; which are any."""

    place: Tensor
    foreground: Tensor
    taken: Tensor


def match(
    box: Tensor,
    target: Tensor,
    there: Tensor,
    *,
    foreground: float,
    background: float,
    best_of_object: bool = False,
) -> Matched:
    """Matches boxes with the objects they overlap most; ties go to the first object.

    box:    [B, N, 4], or [1, N, 4] for all images
    target: [B, G, 4] boxes of objects
    there:  [B, G] which of them there are
    best_of_object: the boxes that overlap an object most are foreground however little that is
    """
    at_once = max(1, _PAIRS // (box.shape[1] * target.shape[1]))
    parts = []
    for begin in range(0, len(target), at_once):
        rows = slice(begin, begin + at_once)
        some = box[rows] if len(box) > 1 else box
        iou = overlaps(some, target[rows]).masked_fill_(~there[rows, None], -1.0)
        best, place = iou.max(dim=2)
        kind = torch.where(best >= foreground, 1, torch.where(best < background, 0, -1))
        if best_of_object:
            most = iou.amax(dim=1, keepdim=True)
            kind = torch.where(((iou == most) & there[rows, None]).any(dim=2), 1, kind)
        parts.append((place, kind))
    place, kind = (torch.cat(column) for column in zip(*parts, strict=True))
    return Matched(place, kind)


def sample(kind: Tensor, random: Tensor, number: int, foreground_share: float) -> Sampled:
    """Samples up to `number` boxes per image, at most the given share of them foreground, using [B,
    N] random numbers."""
    boxes = kind.shape[1]
    most = min(int(number * foreground_share), boxes)
    number = min(number, boxes)
    front = torch.where(kind == 1, random, -1.0).topk(most, dim=1)
    back = torch.where(kind == 0, random, -1.0).topk(number, dim=1)
    fronts = (front.values >= 0).sum(dim=1, keepdim=True)
    backs = (back.values >= 0).sum(dim=1, keepdim=True)
    slot = torch.arange(number, device=kind.device).expand(len(kind), -1)
    is_front = slot < fronts
    place = torch.cat([front.indices, back.indices], dim=1)
    place = place.gather(1, torch.where(is_front, slot, most + slot - fronts))
    return Sampled(place, is_front, slot < fronts + backs)


def taken(values: Tensor, place: Tensor) -> Tensor:
    """[B, S, ...] the values at [B, S] places of [B, N, ...]; [1, N, ...] is for all images."""
    values = values.expand(len(place), *values.shape[1:])
    index = place.view(*place.shape, *[1] * (values.dim() - 2))
    return values.gather(1, index.expand(*place.shape, *values.shape[2:]))
