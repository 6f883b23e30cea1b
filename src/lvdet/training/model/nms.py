"""Greedy non-maximum suppression, of many groups at once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torchvision
from torch import Tensor

#: Boxes of padded groups at a time, which bounds the memory.
_BOXES = 1 << 20


def survivors(box: Tensor, there: Tensor, threshold: float) -> Tensor:
    """[G, N] bool, which of [G, N, 4] boxes of each group are kept.

    Boxes come by falling score. From the first on, a box is kept unless its IoU with one that is
    kept already exceeds the threshold, as float32 both; where `there` is False there is no box.
    """
    if box.is_cuda:
        from lvdet.training.model.nms_kernels import survivors_on_gpu

        return survivors_on_gpu(box, there, threshold)
    threshold = torch.tensor(threshold, dtype=torch.float32).item()
    kept = torch.zeros_like(there)
    falling = -torch.arange(box.shape[1], dtype=torch.float32)
    for group in range(len(box)):
        rows = there[group].nonzero().squeeze(1)
        chosen = torchvision.ops.nms(box[group, rows].float(), falling[rows], threshold)
        kept[group, rows[chosen]] = True
    return kept


def class_nms(
    boxes: Tensor, scores: Tensor, groups: Tensor, thresholds: Sequence[float]
) -> list[Tensor]:
    """For each threshold the kept rows of [N, 4] boxes, by falling score; ties by row.

    groups: [N] int64; boxes suppress those of their own group only.
    """
    order = torch.argsort(scores, descending=True, stable=True)
    order = order[torch.argsort(groups[order], stable=True)]
    count = torch.unique_consecutive(groups[order], return_counts=True)[1]
    begin = torch.cumsum(count, 0) - count
    kept = torch.zeros(len(thresholds), len(boxes), dtype=torch.bool, device=boxes.device)
    # Groups of like size beside each other, so that little is padded.
    by_size = torch.argsort(count)
    sizes = count[by_size].tolist()
    first = 0
    while first < len(sizes):
        last = first + 1
        while last < len(sizes) and sizes[last] * (last + 1 - first) <= _BOXES:
            last += 1
        some = by_size[first:last]
        slot = torch.arange(sizes[last - 1], device=boxes.device)
        there = slot < count[some, None]
        row = order[torch.where(there, begin[some, None] + slot, 0)]
        for number, threshold in enumerate(thresholds):
            kept[number, row[survivors(boxes[row], there, threshold)]] = True
        first = last
    falling = torch.argsort(scores, descending=True, stable=True)
    return [falling[of_one[falling]] for of_one in kept]
