"""The valid values of a config."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config

#: The values of keys with a fixed set of choices.
CHOICES = {
    "input.by": ("shortest", "longest"),
    "input.test_by": ("", "shortest", "longest"),
    "model.kind": ("mask_rcnn", "cascade_rcnn"),
    "model.backbone": (
        "resnet50",
        "resnet101",
        "resnext101_32x8d",
        "regnet_y_4gf",
        "resnet18",
        "tiny",
    ),
    "model.norm": ("", "frozen", "batch", "group"),
    "model.stride_in": ("", "1x1", "3x3"),
    "classifier.loss": ("softmax", "sigmoid", "equalization", "federated", "balanced_groups"),
    "sampler.name": ("repeat_factor", "uniform", "class_aware"),
    "run.precision": ("", "bf16", "fp32"),
}


def _rising(numbers: tuple[int, ...]) -> bool:
    return all(a < b for a, b in pairwise(numbers))


#: The rule for each value, in words and as a function.
RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "input.sizes": (
        "one or more increasing sizes, each at least 32",
        lambda sizes: bool(sizes) and sizes[0] >= 32 and _rising(sizes),
    ),
    "input.largest": ("at least 32", lambda size: size >= 32),
    "input.test_size": ("0, or at least 32", lambda size: size == 0 or size >= 32),
    "input.flip": ("between 0 and 1", lambda part: 0 <= part <= 1),
    "model.anchors": ("5 increasing sizes", lambda sides: len(sides) == 5 and _rising((0, *sides))),
    "model.weights": ("imagenet, none or a file", bool),
    "classifier.temperature": ("at least 0", lambda value: value >= 0),
    "classifier.rarer_than": ("between 0 and 1", lambda part: 0 <= part <= 1),
    "classifier.sampled_classes": ("at least 1", lambda count: count >= 1),
    "classifier.others_ratio": ("more than 0", lambda ratio: ratio > 0),
    "classifier.group_images": ("at least 1", lambda count: count >= 1),
    "sampler.threshold": ("more than 0 and at most 1", lambda part: 0 < part <= 1),
    "schedule.steps": ("at least 1", lambda steps: steps >= 1),
    "schedule.batch": ("at least 1", lambda batch: batch >= 1),
    "schedule.rate": ("more than 0", lambda rate: rate > 0),
    "schedule.milestones": (
        "increasing steps, from 1",
        lambda steps: _rising(steps) and all(step >= 1 for step in steps),
    ),
    "schedule.decay": ("more than 0 and at most 1", lambda factor: 0 < factor <= 1),
    "schedule.warmup_factor": ("-1, or from 0 to 1", lambda part: part == -1 or 0 <= part <= 1),
    "schedule.warmup_rate": ("-1, or at least 0", lambda rate: rate == -1 or rate >= 0),
    "schedule.warmup_steps": ("-1, or at least 0", lambda steps: steps >= -1),
    "schedule.momentum": ("at least 0 and less than 1", lambda part: 0 <= part < 1),
    "schedule.weight_decay": ("at least 0", lambda value: value >= 0),
    "schedule.clip": ("at least 0", lambda norm: norm >= 0),
    "schedule.accumulate": ("at least 1", lambda parts: parts >= 1),
    "run.seed": ("at least 0", lambda seed: seed >= 0),
    "run.workers": ("-1, or at least 0", lambda count: count >= -1),
    "run.log_every": ("at least 0", lambda steps: steps >= 0),
    "run.checkpoint_every": ("at least 0", lambda steps: steps >= 0),
    "run.evaluate_every": ("at least 0", lambda steps: steps >= 0),
    "run.keep": ("at least 1", lambda count: count >= 1),
}


def check_rules(config: Config, where: str) -> None:
    """Raises for a config with an invalid value."""
    values = {
        f"{section}.{key}": value
        for section, content in asdict(config).items()
        for key, value in content.items()
    }
    for key, value in values.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{where}: {key} is {value}, expected a number")
        if key in CHOICES and value not in CHOICES[key]:
            choices = ", ".join(choice or '""' for choice in CHOICES[key])
            raise InputError(f"{where}: {key} is {value!r}, expected one of {choices}")
        if key in RULES and not RULES[key][1](value):
            shown = list(value) if isinstance(value, tuple) else value
            raise InputError(f"{where}: {key} is {shown!r}, expected {RULES[key][0]}")
    if config.input.between and len(config.input.sizes) != 2:
        raise InputError(
            f"{where}: input.sizes has {len(config.input.sizes)} sizes, expected 2 with "
            "input.between"
        )
    if config.schedule.warmup_rate != -1 and config.schedule.warmup_factor != -1:
        raise InputError(
            f"{where}: schedule.warmup_rate and schedule.warmup_factor are both given, expected one"
        )
    for key in ("train", "train_images"):
        if not getattr(config.data, key):
            raise InputError(f"{where}: data.{key} is missing")
    if config.data.val and not config.data.val_images:
        raise InputError(f"{where}: data.val_images is missing, but data.val is given")
