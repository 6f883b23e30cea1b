"""Pooling is torchvision's pooling level by level."""

from __future__ import annotations

import pytest
import torch
from torchvision.ops import MultiScaleRoIAlign, roi_align

from lvdet.training.model.pooling import pool


def pyramid(height: int, width: int) -> list[torch.Tensor]:
    return [torch.randn(2, 5, height // s, width // s, requires_grad=True) for s in (4, 8, 16, 32)]


def boxes(height: int, width: int, number: int) -> torch.Tensor:
    """Of all sizes, many of them at the edges."""
    size = torch.tensor([width, height])
    low = (torch.rand(number, 2) * 1.4 - 0.3).clamp(0, 0.9) * size
    high = low + torch.exp(torch.rand(number, 2) * 7) + 0.01
    return torch.cat([low, torch.minimum(high, size)], dim=1)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (192, 320), (640, 512)])
def test_values_and_gradients(height: int, width: int) -> None:
    torch.manual_seed(height)
    levels, box = pyramid(height, width), boxes(height, width, 80)
    image = torch.arange(80) // 40
    theirs = MultiScaleRoIAlign(["0", "1", "2", "3"], 7, 2)
    expected = theirs(
        {str(k): level for k, level in enumerate(levels)},
        [box[:40], box[40:]],
        [(height, width)] * 2,
    )
    got = pool(levels, image, box, 7, samples=2, aligned=False)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    weight = torch.randn_like(got)
    for one, other in zip(
        torch.autograd.grad((got * weight).sum(), levels),
        torch.autograd.grad((expected * weight).sum(), levels),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_aligned() -> None:
    torch.manual_seed(0)
    levels, box = pyramid(128, 128), boxes(128, 128, 60)
    image = torch.arange(60) % 2
    got = pool(levels, image, box, 7, samples=2, aligned=True)
    area = (box[:, 2:] - box[:, :2]).prod(1)
    level = (4 + (area.sqrt() / 224).log2() + 1e-6).floor().clamp(2, 5).long() - 2
    rois = torch.cat([image[:, None].float(), box], dim=1)
    for row in range(60):
        scale = 0.25 / 2 ** int(level[row])
        alone = roi_align(levels[int(level[row])], rois[row : row + 1], 7, scale, 2, True)
        torch.testing.assert_close(got[row : row + 1], alone, rtol=1e-4, atol=1e-4)
