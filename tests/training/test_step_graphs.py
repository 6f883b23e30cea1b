"""Steps that are recorded are the steps that they were."""

from __future__ import annotations

import pytest
import torch

from lvdet.training.loop import step_graphs
from lvdet.training.loop.step import differentiate
from lvdet.training.loop.step_graphs import Sightings, StepGraphs, copy_into, room_like, size_of
from training.model.random_batch import random_batch
from training.test_accumulate import made


@pytest.mark.parametrize(("most", "room"), [(1, 16), (8, 16), (16, 16), (17, 32), (64, 64)])
def test_room_for_objects_is_a_power_of_two(most: int, room: int) -> None:
    batch = random_batch(1, images=2, most=most)[0]
    assert size_of(batch) == (2, 3, 128, 192, room)


@pytest.mark.parametrize("kind", ["mask_rcnn", "cascade_rcnn"])
def test_what_a_batch_before_left_behind_changes_nothing(kind: str) -> None:
    detector = made("softmax", kind)
    held = room_like(random_batch(5, images=2)[0], 32)
    for seed in (1, 2):
        batch = random_batch(seed, images=2)[0]
        copy_into(held, batch)
        found = [differentiate(detector, detector, some, "fp32", 1) for some in (batch, held)]
        for name, loss in found[0].items():
            torch.testing.assert_close(found[1][name], loss, rtol=1e-5, atol=1e-7, msg=name)


def test_sizes_that_come_often_enough() -> None:
    seen = Sightings()
    assert [seen.often((100,)) for _ in range(32)] == [False] * 30 + [True] * 2
    rare = [
        seen.often((2,)) or any(seen.often((number,)) for number in range(3, 20))
        for _ in range(200)
    ]
    assert not any(rare)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
@pytest.mark.parametrize("kind", ["mask_rcnn", "cascade_rcnn"])
def test_a_recorded_step_is_a_step(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_graphs, "SEEN", 1)
    detector = made("federated", kind).cuda()
    graphs = StepGraphs(detector, "fp32")
    recorded = 0
    for seed in (1, 2, 3, 4):
        batch = random_batch(seed, images=2)[0].to(torch.device("cuda"))
        losses = graphs.differentiate(batch)
        if losses is None:
            continue
        recorded += 1
        gradients = [p.grad.clone() for p in detector.parameters() if p.grad is not None]
        detector.zero_grad()
        expected = differentiate(detector, detector, batch, "fp32", 1)
        for name, loss in expected.items():
            torch.testing.assert_close(losses[name], loss, rtol=1e-5, atol=1e-6, msg=name)
        for gradient, parameter in zip(gradients, detector.parameters(), strict=True):
            assert parameter.grad is not None
            assert (gradient - parameter.grad).norm() <= 1e-4 * gradient.norm() + 1e-6
        detector.zero_grad(set_to_none=True)
    assert recorded == 3
