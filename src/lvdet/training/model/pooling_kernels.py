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

from lvdet.training.model.boxes import on_device

#: Programs for the gradient of a box, which take its rows of pixels in turns.
_PARTS = 4


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
            _scatter[(len(span), _PARTS)](
                total, place, span, gradients[0].contiguous(), channels, side=side,
                samples=samples, wide=triton.next_power_of_2(side),
                block=triton.next_power_of_2(channels), parts=_PARTS, num_warps=1,
            )  # fmt: skip
        return total.to(ctx.dtype), None, None, None, None


@triton.jit
def _box(place, span, box):
    """Where the pixels of a box's image begin, its height and width, and the span of the box."""
    first, height = tl.load(place + box * 3), tl.load(place + box * 3 + 1)
    x, y = tl.load(span + box * 4), tl.load(span + box * 4 + 1)
    wide, high = tl.load(span + box * 4 + 2), tl.load(span + box * 4 + 3)
    return first, height, tl.load(place + box * 3 + 2), x, y, wide, high


@triton.jit
def _along(start, size, number, step: tl.constexpr, limit, samples: tl.constexpr):
    """In one direction, a pixel beside a point and its weight: of every point there are two, at
    even steps the lower; the weight is 0 for a point more than a pixel outside."""
    at = start + number * size + (step // 2 + 0.5) * size / samples
    inside = (at >= -1.0) & (at <= limit.to(tl.float32))
    at = tl.minimum(tl.maximum(at, 0.0), limit.to(tl.float32) - 1.0)
    low = at.to(tl.int64)
    part = at - low.to(tl.float32)
    upper: tl.constexpr = step % 2
    weight = upper * part + (1 - upper) * (1.0 - part)
    return tl.minimum(low + upper, limit - 1), tl.where(inside, weight, 0.0)


@triton.jit
def _gather(
    pixels, place, span, bins, channels,
    side: tl.constexpr, samples: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """A bin is the mean over its points of the pixels around them."""
    box, number = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, height, width, x, y, wide, high = _box(place, span, box)
    channel = tl.arange(0, block)
    there = channel < channels
    total = tl.zeros((block,), dtype=tl.float32)
    for down in tl.static_range(2 * samples):
        row, of_row = _along(y, high, number // side, down, height, samples)
        for right in tl.static_range(2 * samples):
            column, of_column = _along(x, wide, number % side, right, width, samples)
            at = pixels + (first + row * width + column) * channels + channel
            total += of_row * of_column * tl.load(at, mask=there, other=0.0).to(tl.float32)
    out = bins + (box * side * side + number) * channels + channel
    tl.store(out, (total / (samples * samples)).to(bins.dtype.element_ty), mask=there)


@triton.jit
def _share(start, size, number, pixel, limit, samples: tl.constexpr):
    """In one direction, the weight of a pixel in a bin: of all the bin's points beside it."""
    total = number * 0.0
    for step in tl.static_range(2 * samples):
        beside, weight = _along(start, size, number, step, limit, samples)
        total += tl.where(beside == pixel, weight, 0.0)
    return total


@triton.jit
def _reached(start, size, number, limit, last: tl.constexpr, samples: tl.constexpr):
    """In one direction, the first or the last pixel that a bin is made of."""
    beside, _ = _along(start, size, number, (2 * samples - 1) * last, limit, samples)
    return beside


@triton.jit
def _scatter(
    total, place, span, gradient, channels,
    side: tl.constexpr, samples: tl.constexpr, wide: tl.constexpr, block: tl.constexpr,
    parts: tl.constexpr,
):  # fmt: skip
    """Each pixel of a box gets its shares of the gradients of the bins: rows of bins are summed
    for a row of pixels first, so that a pixel is added to once."""
    box, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    first, height, width, x, y, broad, high = _box(place, span, box)
    channel, across = tl.arange(0, block), tl.arange(0, wide)
    source = gradient + box * side * side * channels + across[:, None] * channels + channel[None, :]
    there = (across < side)[:, None] & (channel < channels)[None, :]
    top, bottom = (
        _reached(y, high, 0, height, 0, samples),
        _reached(y, high, side - 1, height, 1, samples),
    )
    left, right = (
        _reached(x, broad, 0, width, 0, samples),
        _reached(x, broad, side - 1, width, 1, samples),
    )
    for row in range(top + part, bottom + 1, parts):
        of_row = tl.zeros((wide, block), dtype=tl.float32)
        for down in range(side):
            share = _share(y, high, down, row, height, samples)
            if share != 0.0:
                at = source + down * side * channels
                of_row += share * tl.load(at, mask=there, other=0.0).to(tl.float32)
        of_row /= samples * samples
        for column in range(left, right + 1):
            share = _share(x, broad, across, column, width, samples)
            at = total + (first + row * width + column) * channels + channel
            tl.atomic_add(
                at, tl.sum(share[:, None] * of_row, axis=0), mask=channel < channels, sem="relaxed"
            )
