"""Balanced groups: where their logits are, and which samples they take."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lvdet.training.losses.balanced_groups import (
    BalancedGroups,
    balanced_groups_loss,
    choose_samples,
    lay_out,
    row_draws,
)
from oracles.loss_references import others_taken

torch.set_num_threads(1)

#: Classes of the groups 1, 0, 3, 0, 2, 3, 1, 2: both sides of every bound.
INSTANCES = (10, 9, 1000, 0, 100, 5000, 99, 999)


def test_layout_by_hand() -> None:
    layout = lay_out(torch.tensor(INSTANCES))
    assert layout.sizes == [3, 3, 3, 3]
    assert layout.column.tolist() == [4, 1, 10, 2, 7, 11, 5, 8]
    # Columns: no sample, the eight classes, background.
    assert layout.slot.tolist() == [
        [0, 0, 1, 0, 2, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 2, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0, 2, 0],
        [0, 0, 0, 1, 0, 0, 2, 0, 0, 0],
    ]


def test_groups_without_classes_have_no_slots() -> None:
    layout = lay_out(torch.tensor([5000, 3, 7000]))
    assert layout.sizes == [2, 3]
    assert layout.column.tolist() == [3, 1, 4]
    assert BalancedGroups(torch.tensor([5000, 3, 7000]), 8.0, 2).outputs == 5


def test_loss_by_hand() -> None:
    """Group 0 has classes 1 and 3, group 1 the rest; with β = 9 each takes all samples.

    A group without foreground is not there, and its slopes are 0.
    """
    layout = lay_out(torch.tensor([50, 5, 50, 5]))
    logits = torch.tensor([[1.0, 2.0, 5.0, 3.0, 4.0, 9.0]] * 3, dtype=torch.float64).log()
    logits.requires_grad_()
    count_of_all = (layout.sizes, layout.slot, 9.0, torch.rand(2, 3), 1)
    both = balanced_groups_loss(logits, torch.tensor([3, 0, 4]), *count_of_all)
    expected = -math.log(5 / 8 * 1 / 8 * 1 / 8) / 3 - math.log(3 / 16 * 4 / 16 * 3 / 16) / 3
    assert both.item() == pytest.approx(expected, rel=1e-14)
    one = balanced_groups_loss(logits, torch.tensor([3, -1, 4]), *count_of_all)
    assert one.item() == pytest.approx(-math.log(5 / 8 * 1 / 8) / 2, rel=1e-14)
    one.backward()
    assert (logits.grad != 0).tolist() == [
        [True] * 3 + [False] * 3,
        [False] * 6,
        [True] * 3 + [False] * 3,
    ]


@given(
    label=st.lists(st.integers(-1, 3), max_size=40),
    ratio=st.sampled_from([0.0, 0.4, 0.5, 1.0, 1.5, 8.0, 64.0]),
    seed=st.integers(0, 99),
)
def test_as_many_others_as_wanted_or_there(label: list[int], ratio: float, seed: int) -> None:
    """Labels 0 to 2 are of three groups, 3 is background."""
    rows = torch.tensor(label, dtype=torch.int64)
    own = torch.arange(3)[:, None] == rows
    random = row_draws(torch.tensor([seed]), len(label), 3)
    chosen = choose_samples(own, rows >= 0, ratio, random).numpy()
    for group in range(3):
        mine = [i for i, y in enumerate(label) if y == group]
        others = [i for i, y in enumerate(label) if y not in (group, -1)]
        expected = others_taken(mine, others, ratio, random[group].numpy())
        assert set(np.flatnonzero(chosen[group]).tolist()) == expected


def test_others_have_equal_chances() -> None:
    """Of two groups with one and two own samples, β = 2, over 3,000 draws."""
    rows = torch.tensor([0, 1, 1, 2, 2, 2, -1, 2])
    own = torch.arange(2)[:, None] == rows
    random = row_draws(torch.arange(3000) * 11, 3000 * 8, 2).view(2, 3000, 8).movedim(1, 0)
    draws = choose_samples(own, rows >= 0, 2.0, random).double()
    chance = torch.tensor(
        [[1] + [2 / 6] * 5 + [0, 2 / 6], [4 / 5, 1, 1] + [4 / 5] * 3 + [0, 4 / 5]],
        dtype=torch.float64,
    )
    spread = (chance * (1 - chance) / 3000).sqrt()
    assert bool(((draws.mean(dim=0) - chance).abs() <= 3.5 * spread + 1e-12).all())


def test_equal_keys_change_no_numbers() -> None:
    """Of random float32 some are equal."""
    rows = torch.tensor([0] * 3 + [1] * 97)
    chosen = choose_samples((rows == 0)[None], rows >= 0, 4.0, torch.zeros(1, 100))
    assert chosen.sum() == 3 + 12


def test_a_group_of_images_without_a_group_of_classes_halves_its_weight() -> None:
    """Class 0 is in the first two images alone: as on one of two GPUs."""
    loss = BalancedGroups(torch.tensor([5]), 8.0, 2)
    logits = torch.zeros(8, 2, dtype=torch.float64)
    seed = torch.arange(4)
    alone = loss.loss(logits[:4], torch.tensor([0, 1, 0, 1]), torch.ones(()), seed[:2])
    both = loss.loss(logits, torch.tensor([0, 1, 0, 1, 1, 1, 1, 1]), torch.ones(()), seed)
    assert alone.item() == pytest.approx(math.log(2))
    assert both.item() == pytest.approx(math.log(2) / 2)
