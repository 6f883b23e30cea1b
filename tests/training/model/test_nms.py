"""Suppression of many groups at once keeps what torchvision keeps of each."""

from __future__ import annotations

from itertools import pairwise

import torch
import torchvision
from hypothesis import given
from hypothesis import strategies as st

from lvdet.training.model.nms import suppressed_in_groups, survivors


def some_boxes(seed: int, number: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    low = torch.randint(0, 30, (number, 2), generator=rng)
    return torch.cat([low, low + torch.randint(1, 20, (number, 2), generator=rng)], dim=1).float()


def by_definition(box: torch.Tensor, threshold: float) -> list[bool]:
    """Greedy, box by box, of boxes by descending score."""
    iou = torchvision.ops.box_iou(box, box)
    kept: list[int] = []
    for row in range(len(box)):
        if all(iou[row, other] <= threshold for other in kept):
            kept.append(row)
    return [row in kept for row in range(len(box))]


@given(seed=st.integers(0, 9999), number=st.integers(1, 40), threshold=st.sampled_from([0.3, 0.7]))
def test_survivors(seed: int, number: int, threshold: float) -> None:
    box = some_boxes(seed, 2 * number).view(2, number, 4)
    there = torch.arange(2 * number).view(2, number) % 5 != seed % 5
    got = survivors(box, there, threshold)
    for group in range(2):
        assert got[group][~there[group]].sum() == 0
        assert got[group][there[group]].tolist() == by_definition(
            box[group, there[group]], threshold
        )


@given(seed=st.integers(0, 9999), number=st.integers(0, 60), behind=st.integers(0, 3))
def test_groups(seed: int, number: int, behind: int) -> None:
    """Of different sizes, some empty, and boxes behind the last."""
    rng = torch.Generator().manual_seed(seed)
    box = some_boxes(seed, number + behind)
    group = torch.randint(0, 5, (number,), generator=rng).sort()[0]
    begin = torch.searchsorted(group, torch.arange(6))
    for threshold in (0.3, 0.5, 0.7):
        got = suppressed_in_groups(box, begin, threshold, max(number, 1))
        expected = [
            kept
            for first, last in pairwise(begin.tolist())
            for kept in by_definition(box[first:last], threshold)
        ]
        assert got.tolist() == expected + [False] * behind
