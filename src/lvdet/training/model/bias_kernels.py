"""Bias, another map and ReLU in one pass on a GPU, and in one pass back, with the bias's gradient.

The channels of a pixel lie beside each other: features are [pixels, C].
"""

# Triton's functions have no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Pixels and channels of a tile; programs that sum a bias's gradient.
_ROWS, _COLUMNS, _PROGRAMS = 64, 64, 2048


def add_bias_on_gpu(x: Tensor, bias: Tensor, other: Tensor | None, rectified: bool) -> Tensor:
    """As `bias.add_bias`, of features in channels-last order."""
    if other is not None:
        other = other.to(x.dtype).contiguous(memory_format=torch.channels_last)
    out: Tensor = _Biased.apply(x, bias, other, rectified)
    return out


class _Biased(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, other: Tensor | None, rectified: bool) -> Tensor:
        rows, channels = x.numel() // x.shape[1], x.shape[1]
        _add[(triton.cdiv(rows, _ROWS), triton.cdiv(channels, _COLUMNS))](
            x, bias, x if other is None else other, rows, channels,
            more=other is not None, rectified=rectified, tall=_ROWS, wide=_COLUMNS,
        )  # fmt: skip
        ctx.mark_dirty(x)
        ctx.rectified = rectified
        if rectified:
            ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradients[0].contiguous(memory_format=torch.channels_last)
        out = ctx.saved_tensors[0] if ctx.rectified else gradient
        _, of_bias, of_other, _ = ctx.needs_input_grad
        if not of_bias:
            if ctx.rectified:
                gradient = torch.ops.aten.threshold_backward(gradient, out, 0)
            return gradient, None, gradient if of_other else None, None
        rows, channels = gradient.numel() // gradient.shape[1], gradient.shape[1]
        columns = triton.cdiv(channels, _COLUMNS)
        programs = min(triton.cdiv(rows, _ROWS), triton.cdiv(_PROGRAMS, columns))
        into = torch.empty_like(gradient) if ctx.rectified else gradient
        total = torch.empty(programs, channels, dtype=torch.float32, device=gradient.device)
        _back[(programs, columns)](
            gradient, out, into, total, rows, channels, programs,
            rectified=ctx.rectified, tall=_ROWS, wide=_COLUMNS,
        )  # fmt: skip
        return into, total.sum(dim=0), into if of_other else None, None


@triton.jit(do_not_specialize=["rows"])
def _add(
    x, bias, other, rows, channels,
    more: tl.constexpr, rectified: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """x + bias + other, in place of x."""
    row = tl.program_id(0).to(tl.int64) * tall + tl.arange(0, tall)[:, None]
    column = tl.program_id(1) * wide + tl.arange(0, wide)[None, :]
    there = (row < rows) & (column < channels)
    at = row * channels + column
    value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
    value += tl.load(bias + column, mask=column < channels, other=0.0).to(tl.float32)
    if more:
        value += tl.load(other + at, mask=there, other=0.0).to(tl.float32)
    if rectified:
        value = tl.where(value < 0.0, 0.0, value)  # what is not a number stays none
    tl.store(x + at, value.to(x.dtype.element_ty), mask=there)


@triton.jit(do_not_specialize=["rows", "programs"])
def _back(
    gradient, out, into, total, rows, channels, programs,
    rectified: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """The gradient where the output is above 0, and its sum over the tiles of a program."""
    column = tl.program_id(1) * wide + tl.arange(0, wide)[None, :]
    found = tl.zeros((tall, wide), dtype=tl.float32)
    for tile in range(tl.program_id(0), tl.cdiv(rows, tall), programs):
        row = tl.cast(tile, tl.int64) * tall + tl.arange(0, tall)[:, None]
        there = (row < rows) & (column < channels)
        at = row * channels + column
        value = tl.load(gradient + at, mask=there, other=0.0)
        if rectified:
            above = tl.load(out + at, mask=there, other=0.0) > 0.0
            value = tl.where(above, value, 0.0)
            tl.store(into + at, value, mask=there)
        found += value.to(tl.float32)
    at = tl.program_id(0) * channels + column
    tl.store(total + at, tl.sum(found, axis=0, keep_dims=True), mask=column < channels)
