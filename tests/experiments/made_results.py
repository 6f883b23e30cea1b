"""Results of runs as files have them, with numbers that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def made(
    name: str,
    seed: int,
    measures: Mapping[str, Mapping[str, float | None]],
    *,
    resamples: Mapping[str, Mapping[str, list[float]]] | None = None,
    scale: str = "synth",
    parts: tuple[str, ...] = (),
    key: str = "",
    finished: str = "2026-01-01T00:00:00+00:00",
) -> dict[str, Any]:
    """A result; values that a test does not set are the same in all."""
    return {
        "key": key or f"{name}-{seed}",
        "names": [name],
        "seed": seed,
        "scale": scale,
        "set": "main",
        "retrained": False,
        "parts": [*parts],
        "measures": measures,
        "classes": {},
        "resamples": resamples or {},
        "examples": {},
        "provenance": {
            "lvdet": "0",
            "commit": "abc",
            "device": "a machine",
            "torch": "2",
            "finished": finished,
            "seconds": {"training": 60.0, "predicting": 20.0, "measuring": 10.0},
            "config": {
                "model.kind": "mask_rcnn",
                "model.backbone": "resnet50",
                "schedule.steps": 3000,
            },
            "data": [],
        },
    }


def own(**values: float) -> dict[str, dict[str, float | None]]:
    """Numbers under a run's own condition, in points: old_AP=20 is old.AP."""
    return {"own": {key.replace("_", "."): value / 100 for key, value in values.items()}}
