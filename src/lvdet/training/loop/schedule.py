"""The learning rate at each step."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config, Schedule


def resolved_schedule(config: Config) -> Schedule:
    """The schedule with the rate and length of its warm-up: where they are -1 the paper's, over
    10,000 steps from 1e-4 of the rate for sigmoid, over 1,000 from 1e-3 for the other losses, but
    over a tenth of all steps at most.

    The paper says that warm-up starts "with a learning rate of 1e-3". 1e-3 over 1,000 steps are the
    defaults of Detectron2, where 1e-3 is a factor of the rate: it starts at 2e-5.
    """
    longer = config.classifier.loss == "sigmoid"
    schedule = config.schedule
    if schedule.warmup_rate == -1:
        paper = 1e-4 if longer else 1e-3
        factor = paper if schedule.warmup_factor == -1 else schedule.warmup_factor
        schedule = replace(schedule, warmup_rate=factor * schedule.rate)
    if schedule.warmup_steps == -1:
        steps = min(10_000 if longer else 1_000, schedule.steps // 10)
        schedule = replace(schedule, warmup_steps=steps)
    return schedule


def require_full_rate(schedule: Schedule) -> None:
    """Raises for a run that would end before its warm-up."""
    if schedule.warmup_steps > schedule.steps:
        raise InputError(
            f"schedule.warmup_steps is {schedule.warmup_steps:,}, more than schedule.steps, "
            f"{schedule.steps:,}: the full rate would never be reached"
        )


def rate_at(schedule: Schedule, step: int) -> float:
    """The learning rate of a step, counted from 0: it rises linearly during the warm-up and is
    multiplied by `decay` at each milestone."""
    factor = schedule.decay ** bisect_right(schedule.milestones, step)
    if step >= schedule.warmup_steps:
        return schedule.rate * factor
    part = step / schedule.warmup_steps
    return (schedule.warmup_rate + (schedule.rate - schedule.warmup_rate) * part) * factor
