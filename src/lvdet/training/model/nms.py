"""Greedy non-maximum suppression, of many groups at once."""

from __future__ import annotations

from itertools import pairwise

import torch
import torchvision
from torch import Tensor


def survivors(box: Tensor, there: Tensor, threshold: float) -> Tensor:
    """[G, N] bool, which of [G, N, 4] boxes of each group are kept.

    Boxes come by descending score. From the first on, a box is kept unless its IoU with one that is
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


def suppressed_in_groups(box: Tensor, begin: Tensor, threshold: float, largest: int) -> Tensor:
    """[N] bool, which of [N, 4] boxes are kept, as by `survivors`.

    begin:   [G + 1] where each group begins and the last ends; boxes lie by group, in each by
             descending score. Boxes after the last group are not kept
    largest: boxes of a group, at most
    """
    if box.is_cuda:
        from lvdet.training.model.nms_kernels import suppressed_on_gpu

        return suppressed_on_gpu(box, begin, threshold, largest)
    threshold = torch.tensor(threshold, dtype=torch.float32).item()
    kept = torch.zeros(len(box), dtype=torch.bool)
    edges = begin.tolist()
    kept[: edges[-1]] = True
    falling = -torch.arange(largest, dtype=torch.float32)
    for first, last in pairwise(edges):
        if last - first > 1:
            chosen = torchvision.ops.nms(box[first:last], falling[: last - first], threshold)
            kept[first:last] = False
            kept[first + chosen] = True
    return kept
