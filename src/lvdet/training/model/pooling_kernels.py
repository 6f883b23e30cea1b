"""RoIAlign on a GPU: all levels in one call, the channels of a pixel beside each other.

torchvision's pooler asks, level by level, which boxes belong to it, and waits for each answer; its
kernel goes through features with the channels first, in float32. Here the pixels of all levels are
one list, [pixels, C] in the type they have, and each program takes all channels of one bin.
"""

# Triton's functions have no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from lvdet.training.model.constants import on_device


def pool_on_gpu(
    levels: list[Tensor],
    level: Tensor,
    image: Tensor,
    box: Tensor,
    side: int,
    samples: int,
    aligned: bool,
) -> Tensor:
    """[N, C, side, side] in channels-last order, as `pooling.pool`; level: [N] of each box."""
    channels = levels[0].shape[1]
    pixels = torch.cat([part.permute(0, 2, 3, 1).reshape(-1, channels) for part in levels])
    first, shape = 0, []
    for part in levels:
        height, width = part.shape[2:]
        shape.append((first, height, width))
        first += part.shape[0] * height * width
    begin, tall, wide = on_device(tuple(shape), box.device)[level].unbind(1)
    place = torch.stack([begin + image * tall * wide, tall, wide], dim=1)
    scaled = box * (0.25 * torch.exp2(-level.to(box.dtype)))[:, None] - (0.5 if aligned else 0.0)
    size = scaled[:, 2:] - scaled[:, :2]
    size = size if aligned else size.clamp(min=1.0)
    span = torch.cat([scaled[:, :2], size / side], dim=1)
    pooled: Tensor = _Pooling.apply(pixels, place.contiguous(), span.contiguous(), side, samples)
    return pooled.view(len(box), side, side, channels).permute(0, 3, 1, 2)


class _Pooling(torch.autograd.Function):
    """[P, C] pixels to [N, side * side, C] bins.

    place: [N, 3] int64 the box's image in the list of pixels: first pixel, height and width
    span:  [N, 4] float32 x and y of the box in that image, width and height of a bin
    """

    @staticmethod
    def forward(
        ctx: Any, pixels: Tensor, place: Tensor, span: Tensor, side: int, samples: int
    ) -> Tensor:
        channels = pixels.shape[1]
        bins = pixels.new_empty(len(span), side * side, channels)
        ctx.save_for_backward(place, span)
        ctx.shape, ctx.dtype, ctx.settings = pixels.shape, pixels.dtype, (side, samples)
        if len(span):
            _gather[(len(span), side * side)](
                pixels, place, span, bins, channels, side=side, samples=samples,
                block=triton.next_power_of_2(channels), num_warps=2,
            )  # fmt: skip
        return bins

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        place, span = ctx.saved_tensors
        side, samples = ctx.settings
        channels = ctx.shape[1]
        total = torch.zeros(ctx.shape, dtype=torch.float32, device=span.device)
        if len(span):
            _scatter[(len(span), side * side)](
                total, place, span, gradients[0].contiguous(), channels, side=side,
                samples=samples, block=triton.next_power_of_2(channels), num_warps=2,
            )  # fmt: skip
        return total.to(ctx.dtype), None, None, None, None


@triton.jit
def _along(start, size, number, sample, limit, samples: tl.constexpr):
    """Where a point lies in one direction: the two pixels around it, and their weights; those of a
    point more than a pixel outside are 0."""
    at = start + number * size + (sample + 0.5) * size / samples
    inside = (at >= -1.0) & (at <= limit.to(tl.float32))
    at = tl.minimum(tl.maximum(at, 0.0), limit.to(tl.float32) - 1.0)
    low = at.to(tl.int64)
    high = tl.minimum(low + 1, limit - 1)
    part = at - low.to(tl.float32)
    return low, high, tl.where(inside, 1.0 - part, 0.0), tl.where(inside, part, 0.0)


@triton.jit
def _pixel(pixels, first, width, row, column, channels):
    """The channels of one pixel of an image."""
    return pixels + (first + row * width + column) * channels


@triton.jit
def _gather(
    pixels, place, span, bins, channels,
    side: tl.constexpr, samples: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """A bin is the mean over its points of the pixels around them."""
    box = tl.program_id(0).to(tl.int64)
    number = tl.program_id(1)
    first, height = tl.load(place + box * 3), tl.load(place + box * 3 + 1)
    width = tl.load(place + box * 3 + 2)
    x, y = tl.load(span + box * 4), tl.load(span + box * 4 + 1)
    wide, high = tl.load(span + box * 4 + 2), tl.load(span + box * 4 + 3)
    channel = tl.arange(0, block)
    there = channel < channels
    total = tl.zeros((block,), dtype=tl.float32)
    for vertical in tl.static_range(samples):
        up, down, of_up, of_down = _along(y, high, number // side, vertical, height, samples)
        for horizontal in tl.static_range(samples):
            left, right, of_left, of_right = _along(
                x, wide, number % side, horizontal, width, samples
            )
            at = _pixel(pixels, first, width, up, left, channels) + channel
            total += of_up * of_left * tl.load(at, mask=there, other=0.0).to(tl.float32)
            at = _pixel(pixels, first, width, up, right, channels) + channel
            total += of_up * of_right * tl.load(at, mask=there, other=0.0).to(tl.float32)
            at = _pixel(pixels, first, width, down, left, channels) + channel
            total += of_down * of_left * tl.load(at, mask=there, other=0.0).to(tl.float32)
            at = _pixel(pixels, first, width, down, right, channels) + channel
            total += of_down * of_right * tl.load(at, mask=there, other=0.0).to(tl.float32)
    out = bins + (box * side * side + number) * channels + channel
    tl.store(out, (total / (samples * samples)).to(bins.dtype.element_ty), mask=there)


@triton.jit
def _scatter(
    total, place, span, gradient, channels,
    side: tl.constexpr, samples: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """The gradient of a bin goes to the pixels that it was made of."""
    box = tl.program_id(0).to(tl.int64)
    number = tl.program_id(1)
    first, height = tl.load(place + box * 3), tl.load(place + box * 3 + 1)
    width = tl.load(place + box * 3 + 2)
    x, y = tl.load(span + box * 4), tl.load(span + box * 4 + 1)
    wide, high = tl.load(span + box * 4 + 2), tl.load(span + box * 4 + 3)
    channel = tl.arange(0, block)
    there = channel < channels
    source = gradient + (box * side * side + number) * channels + channel
    part = tl.load(source, mask=there, other=0.0).to(tl.float32) / (samples * samples)
    for vertical in tl.static_range(samples):
        up, down, of_up, of_down = _along(y, high, number // side, vertical, height, samples)
        for horizontal in tl.static_range(samples):
            left, right, of_left, of_right = _along(
                x, wide, number % side, horizontal, width, samples
            )
            at = _pixel(total, first, width, up, left, channels) + channel
            tl.atomic_add(at, part * of_up * of_left, mask=there, sem="relaxed")
            at = _pixel(total, first, width, up, right, channels) + channel
            tl.atomic_add(at, part * of_up * of_right, mask=there, sem="relaxed")
            at = _pixel(total, first, width, down, left, channels) + channel
            tl.atomic_add(at, part * of_down * of_left, mask=there, sem="relaxed")
            at = _pixel(total, first, width, down, right, channels) + channel
            tl.atomic_add(at, part * of_down * of_right, mask=there, sem="relaxed")
