"""RoIAlign from the levels of a pyramid: torchvision's, or on a GPU one call for all levels."""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.ops import roi_align

#: Side of a box, in pixels, that belongs to the level of 1/16.
_CANONICAL_SIDE, _CANONICAL_LEVEL = 224.0, 2


def pool(
    levels: list[Tensor], image: Tensor, box: Tensor, side: int, *, samples: int, aligned: bool
) -> Tensor:
    """[N, C, side, side] features of [N, 4] boxes in images [N].

    levels: [B, C, H, W] of 1/4, 1/8, … of the image's size; small boxes are pooled from the first
    samples: points in each direction of a bin; 0: as many as it has pixels
    aligned: the middle of a pixel is its place, not its upper left corner
    """
    level = level_of(box, len(levels))
    if box.is_cuda and samples:
        from lvdet.training.model.pooling_kernels import pool_on_gpu

        return pool_on_gpu(levels, level, image, box, side, samples, aligned)
    rois = torch.cat([image[:, None].to(box.dtype), box], dim=1)
    pooled = levels[0].new_zeros(len(box), levels[0].shape[1], side, side)
    for number, features in enumerate(levels):
        rows = (level == number).nonzero().squeeze(1)
        part = roi_align(features, rois[rows], side, 0.25 * 0.5**number, samples, aligned)
        pooled = pooled.index_copy(0, rows, part.to(pooled.dtype))
    return pooled


def level_of(box: Tensor, levels: int) -> Tensor:
    """[N] int64, the level that a box is pooled from."""
    extent = (box[:, 2:] - box[:, :2]).clamp(min=1e-6).prod(dim=1).sqrt()
    level = _CANONICAL_LEVEL + (extent / _CANONICAL_SIDE).log2() + 1e-6
    return level.floor().clamp(0, levels - 1).long()
