"""Boxes x1, y1, x2, y2 of many images at once."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import torch
from torch import Tensor

#: A decoded side is at most this many times the anchor's, as a logarithm.
_LARGEST = math.log(1000.0 / 16)
#: Narrower boxes, in pixels, are dropped.
SMALLEST_SIDE = 1e-3

Weights = tuple[float, float, float, float]


def overlaps(first: Tensor, second: Tensor) -> Tensor:
    """[B, N, M] IoU of [B, N, 4] and [B, M, 4]; 0 where both are empty."""
    near = torch.maximum(first[:, :, None, :2], second[:, None, :, :2])
    far = torch.minimum(first[:, :, None, 2:], second[:, None, :, 2:])
    width, height = (far - near).clamp_(min=0).unbind(-1)
    shared = width * height
    whole = area(first)[:, :, None] + area(second)[:, None, :] - shared
    return shared / whole.clamp_(min=1e-12)


def area(box: Tensor) -> Tensor:
    """[...] of [..., 4]."""
    return (box[..., 2] - box[..., 0]) * (box[..., 3] - box[..., 1])


def encode(target: Tensor, box: Tensor, weights: Weights) -> Tensor:
    """[..., 4] the codes that lead from `box` to `target`: shifts of the centre relative to the
    sides, and log ratios."""
    size = (box[..., 2:] - box[..., :2]).clamp(min=SMALLEST_SIDE)
    goal = (target[..., 2:] - target[..., :2]).clamp(min=SMALLEST_SIDE)
    shift = (target[..., :2] + 0.5 * goal - box[..., :2] - 0.5 * size) / size
    scale = on_device(weights, box.device).to(box.dtype)
    return torch.cat([shift, (goal / size).log()], dim=-1) * scale


def decode(code: Tensor, box: Tensor, weights: Weights) -> Tensor:
    """[..., 4] the boxes that `encode` would have given these codes."""
    code = code / on_device(weights, code.device).to(code.dtype)
    size = box[..., 2:] - box[..., :2]
    centre = box[..., :2] + 0.5 * size + code[..., :2] * size
    half = 0.5 * size * code[..., 2:].clamp(max=_LARGEST).exp()
    return torch.cat([centre - half, centre + half], dim=-1)


def clip(box: Tensor, size: Tensor) -> Tensor:
    """[B, ..., 4] boxes inside images of [B, 2] height and width.

    What is not a number becomes 0: where training has gone wrong, RoIAlign must not read from
    nowhere before anybody has seen the losses.
    """
    limit = size.flip(1).to(box.dtype).repeat(1, 2)
    limit = limit.view(len(size), *[1] * (box.dim() - 2), 4)
    return torch.minimum(box.nan_to_num(nan=0.0).clamp(min=0), limit)


def is_box(box: Tensor) -> Tensor:
    """[...] bool, whether boxes are at least `SMALLEST_SIDE` wide and high."""
    return (box[..., 2:] - box[..., :2] >= SMALLEST_SIDE).all(-1)


@cache
def on_device(values: tuple[Any, ...], device: torch.device) -> Tensor:
    """The tensor of a tuple of numbers, or of tuples of them, copied to the device once (a copy
    from the host is a wait) and kept, as recorded steps need it where it is; not to be changed."""
    return torch.tensor(values, device=device)
