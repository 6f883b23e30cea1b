"""Suppression of many groups at once keeps what torchvision keeps of each."""

from __future__ import annotations

import pytest
import torch
import torchvision
from hypothesis import given
from hypothesis import strategies as st

from lvdet.training.model import nms
from lvdet.training.model.nms import class_nms, survivors


def some_boxes(seed: int, number: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    low = torch.randint(0, 30, (number, 2), generator=rng)
    return torch.cat([low, low + torch.randint(1, 20, (number, 2), generator=rng)], dim=1).float()


def by_definition(box: torch.Tensor, threshold: float) -> list[bool]:
    """Greedy, box by box, of boxes by falling score."""
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


@given(seed=st.integers(0, 9999), number=st.integers(0, 60), at_once=st.sampled_from([1, 30, 9999]))
def test_classes(seed: int, number: int, at_once: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    box = some_boxes(seed, number)
    score = torch.randint(0, 9, (number,), generator=rng) / 8  # many ties
    group = torch.randint(0, 5, (number,), generator=rng) * 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nms, "_BOXES", at_once)
        got = class_nms(box, score, group, [0.3, 0.5, 0.7])
    order = torch.argsort(score, descending=True, stable=True)
    for threshold, rows in zip((0.3, 0.5, 0.7), got, strict=True):
        kept = torch.zeros(number, dtype=torch.bool)
        for name in group.unique():
            mine = order[group[order] == name]
            kept[mine] = torch.tensor(by_definition(box[mine], threshold))
        assert rows.tolist() == order[kept[order]].tolist()
