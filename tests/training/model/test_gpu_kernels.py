"""The kernels of a GPU, interpreted, give what the same functions give on a CPU."""

from __future__ import annotations

import pytest

from training.model.interpreted import assert_same

_SUPPRESSION = """
import torch
from lvdet.training.model.nms import suppressed_in_groups, survivors
from lvdet.training.model.nms_kernels import suppressed_on_gpu, survivors_on_gpu

torch.manual_seed(0)
for number, threshold in ((1, 0.3), (31, 0.7), (32, 0.3), (33, 0.7), (100, 0.3), (290, 0.7)):
    low = torch.randint(0, 40, (3, number, 2))
    box = torch.cat([low, low + torch.randint(0, 30, (3, number, 2))], dim=2).float()
    there = torch.rand(3, number) < 0.9
    assert torch.equal(
        survivors(box, there, threshold), survivors_on_gpu(box, there, threshold)
    ), number
for count, threshold in ((0, 0.3), (1, 0.7), (30, 0.3), (30, 0.7)):
    low = torch.randint(0, 20, (count + 2, 2))
    box = torch.cat([low, low + torch.randint(1, 30, (count + 2, 2))], dim=1).float()
    group = torch.randint(0, 4, (count,)).sort()[0]
    begin = torch.searchsorted(group, torch.arange(5))
    assert torch.equal(
        suppressed_in_groups(box, begin, threshold, 60),
        suppressed_on_gpu(box, begin, threshold, 60),
    ), (count, threshold)
nothing = survivors_on_gpu(torch.zeros(2, 0, 4), torch.zeros(2, 0, dtype=torch.bool), 0.5)
assert nothing.shape == (2, 0)
"""

_POOLING = """
import torch
from lvdet.training.model.pooling import level_of, pool
from lvdet.training.model.pooling_kernels import pool_on_gpu

torch.manual_seed(0)
levels = [torch.randn(2, 5, 64 // s, 32 // s, requires_grad=True) for s in (4, 8, 16, 32)]
size = torch.tensor([32, 64])
low = (torch.rand(6, 2) * 1.4 - 0.3).clamp(0, 0.9) * size
box = torch.cat([low, torch.minimum(low + torch.exp(torch.rand(6, 2) * 7) + 0.01, size)], dim=1)
image = torch.arange(6) % 2
for aligned, side in ((False, 2), (True, 3)):
    expected = pool(levels, image, box, side, samples=2, aligned=aligned)
    got = pool_on_gpu(levels, level_of(box, 4), image, box, side, 2, aligned)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    weight = torch.randn_like(got)
    for one, other in zip(
        torch.autograd.grad((got * weight).sum(), levels),
        torch.autograd.grad((expected * weight).sum(), levels),
    ):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
none = pool_on_gpu(levels, level_of(box[:0], 4), image[:0], box[:0], 2, 2, True)
assert none.shape == (0, 5, 2, 2)
"""

_BIASES = """
import torch
from lvdet.training.model.bias import add_bias
from lvdet.training.model.bias_kernels import add_bias_on_gpu

torch.manual_seed(0)
for channels, more, rectified, frozen in (
    (70, True, True, False),
    (70, True, True, True),
    (5, False, True, False),
    (64, False, False, False),
):
    x = torch.randn(2, channels, 7, 9).contiguous(memory_format=torch.channels_last)
    other = torch.randn(2, channels, 7, 9) if more else None
    leaves = [t for t in (x, other) if t is not None]
    bias = torch.randn(channels, requires_grad=not frozen)
    leaves = [leaf.requires_grad_() for leaf in leaves] + [bias] * (not frozen)
    weight = torch.randn_like(x)
    expected = add_bias(x * 1, bias, other, rectified=rectified)
    got = add_bias_on_gpu(x * 1, bias, other, rectified)
    torch.testing.assert_close(got, expected)
    for one, two in zip(
        torch.autograd.grad((got * weight).sum(), leaves),
        torch.autograd.grad((expected * weight).sum(), leaves),
    ):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
"""


@pytest.mark.long
def test_kernels() -> None:
    assert_same(_SUPPRESSION + _POOLING + _BIASES + 'print("same")')
