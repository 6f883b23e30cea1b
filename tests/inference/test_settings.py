"""What is predicted unless something else is requested: the paper's budgets and minimum score."""

from __future__ import annotations

import inspect

from lvdet.cli.predict import run
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
