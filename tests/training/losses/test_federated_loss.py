"""The classes that the federated loss draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lvdet.training.losses.federated import Federated, draw_classes, federated_loss, group_draws

torch.set_num_threads(1)

IMAGES = np.array([1, 4, 25, 100, 900, 0, 64], dtype=np.int64)
DRAWS = 4000


def drawn(present: NDArray[np.bool_], size: int, draws: int = DRAWS) -> NDArray[np.bool_]:
    """[draws, K], with the weights that `Federated` makes of IMAGES."""
    weight = Federated(torch.from_numpy(IMAGES), size, 2).weight
    random = group_draws(torch.arange(2 * draws) * 1009, draws, len(IMAGES))
    there = torch.from_numpy(present).expand(draws, -1)
    return draw_classes(there, weight, size, random).numpy()


def chance_of_being_drawn(weight: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Of each class, over all orders in which `size` can be drawn one after another."""
    chance = np.zeros(len(weight))
    for order in itertools.permutations(np.flatnonzero(weight), size):
        left, of_order = weight.sum(), 1.0
        for c in order:
            of_order *= weight[c] / left
            left -= weight[c]
        chance[list(order)] += of_order
    return chance


@pytest.mark.parametrize(
    ("size", "present"),
    [(1, ()), (2, ()), (3, ()), (5, ()), (2, (0,)), (5, (0,)), (3, (1, 3)), (2, (1, 3))],
)
def test_chances_are_those_of_drawing_one_after_the_other(
    size: int, present: tuple[int, ...]
) -> None:
    there = np.isin(np.arange(len(IMAGES)), present)
    weight = np.where(there, 0.0, np.sqrt(IMAGES))
    chance = chance_of_being_drawn(weight, size - len(present)) + there
    often = drawn(there, size).mean(axis=0)
    spread = np.sqrt(chance * (1 - chance) / DRAWS)
    assert (np.abs(often - chance) <= 3.5 * spread + 1e-12).all()


@given(
    images=st.lists(st.sampled_from([0, 1, 5, 1000, 10**6]), min_size=1, max_size=12),
    size=st.integers(1, 15),
    data=st.data(),
)
def test_size_and_members(images: list[int], size: int, data: st.DataObject) -> None:
    flags = st.lists(st.booleans(), min_size=len(images), max_size=len(images))
    present = torch.tensor(data.draw(flags))
    weight = torch.tensor(images).sqrt()
    chosen = draw_classes(present[None], weight, size, torch.rand(1, len(images)))[0]
    could = present | (weight > 0)
    assert bool((chosen | ~present).all())
    assert bool((could | ~chosen).all())
    assert chosen.sum() == max(present.sum(), min(size, could.sum()))


def test_every_draw_is_another() -> None:
    assert len({tuple(row) for row in drawn(np.zeros(len(IMAGES), dtype=bool), 3, 50)}) > 5


def test_background_counts_and_classes_not_drawn_do_not() -> None:
    """With room for two, one present and one alone that can be drawn: classes 2 and 0."""
    logits = torch.randn(3, 4, generator=torch.manual_seed(0)).requires_grad_()
    weight = torch.tensor([3.0, 0.0, 0.0, 0.0])
    federated_loss(logits, torch.tensor([2, 4, -1]), weight, 2, torch.rand(1, 4)).backward()
    assert (logits.grad != 0).tolist() == [
        [True, False, True, False],
        [True, False, True, False],
        [False, False, False, False],
    ]


def test_more_present_classes_than_room_stay() -> None:
    logits = torch.randn(5, 9, generator=torch.manual_seed(0)).requires_grad_()
    label = torch.tensor([0, 3, 4, 7, 9])
    federated_loss(logits, label, torch.ones(9), 2, torch.rand(1, 9)).backward()
    assert (logits.grad != 0).any(dim=0).nonzero()[:, 0].tolist() == [0, 3, 4, 7]


def test_each_group_has_its_own_classes_and_its_own_mean() -> None:
    """Two groups of two rows, with room for their own class alone; one has a row that is none."""
    logits = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    label = torch.tensor([0, 3, 2, -1])
    loss = federated_loss(logits, label, torch.ones(3), 1, torch.rand(2, 3))
    assert loss.item() == pytest.approx((2 * np.log(2) / 2 + np.log(2) / 1) / 2)
    loss.backward()
    assert logits.grad.tolist() == [[-1 / 8, 0, 0], [1 / 8, 0, 0], [0, 0, -1 / 4], [0, 0, 0]]


def lvis_like_image_counts() -> NDArray[np.int64]:
    """[1203] image counts over 100,170 images as LVIS v1 publishes them: 337 classes in 1 to 10,
    461 in 11 to 100 and 405 in more, the last of them falling as a power of their rank."""
    counts = np.concatenate(
        [
            np.linspace(1, 10, 337),
            np.geomspace(11, 100, 461),
            3.2e5 / np.arange(1, 406) ** 1.13 * np.linspace(0.15, 1, 405),
        ]
    )
    return counts.clip(1, 45_000).round().astype(np.int64)


def test_of_50_classes_about_43_are_drawn_where_the_reference_draws_them() -> None:
    """Two images of LVIS hold about 7 classes; sixteen hold nearly all 50."""
    counts = lvis_like_image_counts()
    groups = [((counts > low) & (counts <= high)).sum() for low, high in ((0, 10), (10, 100))]
    assert groups == [337, 461]
    chance = counts / 100_170
    assert 3.5 <= chance.sum() <= 4.0, "classes per image"
    random = np.random.default_rng(3)
    there = torch.from_numpy(random.random((4000, 1203)) < chance)
    means = {}
    for images in (2, 16):
        loss = Federated(torch.from_numpy(counts), 50, images)
        groups = len(there) // images
        present = there.unflatten(0, (groups, images)).any(dim=1)
        u = group_draws(torch.from_numpy(random.integers(2**62, size=4000)), groups, 1203)
        chosen = draw_classes(present, loss.weight, loss.size, u)
        means[images] = float((chosen & ~present).sum(dim=1).double().mean())
    assert 41 <= means[2] <= 46
    assert means[16] < 10
