"""What is predicted unless something else is requested: the paper's budgets and minimum score."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from lvdet.cli.predict import run
from lvdet.errors import InputError
from lvdet.inference.settings import Settings


def test_defaults_are_those_of_the_paper() -> None:
    settings = Settings()
    assert (settings.dets_per_image, settings.dets_per_class) == (300, 10_000)
    assert settings.score == 1e-7


def test_the_command_line_has_the_same_defaults() -> None:
    options = inspect.signature(run).parameters
    settings = Settings()
    for name in ("dets_per_image", "dets_per_class", "score", "batch", "workers", "precision"):
        assert options[name].default == getattr(settings, name), name


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"score": float("inf")}, "score is inf, expected a finite number"),
        ({"batch": 0}, "batch is 0, expected 1 or more"),
        ({"workers": -2}, "workers is -2, expected 0 or more, or -1"),
        ({"precision": "fp8"}, "precision is 'fp8', expected fp32 or bf16"),
        ({"nms": ()}, "nms is .*, expected thresholds from 0 to 1"),
        ({"nms": (0.5, 1.5)}, "nms is .*, expected thresholds from 0 to 1"),
        ({"nms": (0.5, 0.5)}, "nms is .*, expected different thresholds"),
    ],
)
def test_settings_are_checked(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Settings(**changed)
