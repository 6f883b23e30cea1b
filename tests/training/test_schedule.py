"""The learning rate at each step, beside torch's own schedulers and the paper's numbers."""

from __future__ import annotations

import pytest
import torch

from lvdet.errors import InputError
from lvdet.training.configuration.config import Classifier, Config, Schedule
from lvdet.training.loop.schedule import rate_at, require_full_rate, resolved_schedule


def test_as_torch_does_it() -> None:
    schedule = Schedule(
        steps=20, rate=0.4, milestones=(3, 9, 15), decay=0.5, warmup_rate=0.1, warmup_steps=6
    )
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.25, 1.0, total_iters=6)
    steps = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 9, 15], 0.5)
    both = torch.optim.lr_scheduler.ChainedScheduler([warm_up, steps], optimizer)
    for step in range(20):
        assert rate_at(schedule, step) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
        optimizer.step()
        both.step()


def test_the_paper() -> None:
    schedule = resolved_schedule(Config())
    rates = [rate_at(schedule, step) for step in (0, 500, 1_000, 119_999, 120_000, 160_000)]
    assert rates == pytest.approx([2e-5, 0.01001, 0.02, 0.02, 0.002, 0.0002])


def test_sigmoid_warms_up_for_longer() -> None:
    schedule = resolved_schedule(Config(classifier=Classifier(loss="sigmoid")))
    rates = [rate_at(schedule, step) for step in (0, 5_000, 10_000)]
    assert rates == pytest.approx([2e-6, (2e-6 + 0.02) / 2, 0.02])


def test_warm_up_from_a_factor_or_a_rate_that_is_given() -> None:
    for given, expected in (({"warmup_factor": 0.25}, 0.005), ({"warmup_rate": 0.001}, 0.001)):
        schedule = resolved_schedule(Config(schedule=Schedule(**given)))
        assert rate_at(schedule, 0) == pytest.approx(expected)
        assert rate_at(schedule, 500) == pytest.approx((expected + 0.02) / 2)


@pytest.mark.parametrize(
    ("loss", "steps", "expected"),
    [
        ("softmax", 180_000, 1_000),
        ("softmax", 9_999, 999),
        ("sigmoid", 90_000, 9_000),
        ("sigmoid", 180_000, 10_000),
        ("federated", 7, 0),
    ],
)
def test_a_short_run_has_a_short_warm_up(loss: str, steps: int, expected: int) -> None:
    what = Config(classifier=Classifier(loss=loss), schedule=Schedule(steps=steps))
    assert resolved_schedule(what).warmup_steps == expected


def test_a_warm_up_beyond_the_end() -> None:
    """A requested one is used unchanged."""
    schedule = resolved_schedule(Config(schedule=Schedule(steps=50, warmup_steps=50)))
    assert schedule.warmup_steps == 50
    require_full_rate(schedule)
    schedule = resolved_schedule(Config(schedule=Schedule(steps=50, warmup_steps=51)))
    with pytest.raises(InputError, match=r"warmup_steps is 51, more than schedule\.steps, 50"):
        require_full_rate(schedule)


def test_no_warm_up() -> None:
    schedule = resolved_schedule(Config(schedule=Schedule(warmup_steps=0)))
    assert rate_at(schedule, 0) == 0.02
