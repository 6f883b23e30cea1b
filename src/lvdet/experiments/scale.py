"""A scale: data, sizes, schedule and budgets for all experiments alike, as a small TOML.

[sets.main]     what `lvdet synth` draws; without sets the configs' own files are used
[budgets]       what stands for the paper's 300 per image and 10,000 per class
[predict]       how images are predicted
[settings]      keys of configs and their values
[factors]       keys of configs, and what they are multiplied by
[replaced.KEY]  values of a key, and what stands for each
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lvdet.errors import InputError
from lvdet.evaluation.protocols import FIXED_PER_CLASS, LVIS_PER_IMAGE
from lvdet.experiments.conditions import limits_of
from lvdet.images.image_set import Settings as SetSettings
from lvdet.studies.budget_tables import Limits
from lvdet.training.configuration.config import Config
from lvdet.training.configuration.config_file import flat_values, read_config, resolved

FOLDER = Path(__file__).parent / "scales"
MAIN = "main"


@dataclass(frozen=True)
class Prediction:
    """How images are predicted: masks or boxes alone, above which score, how many at a time, in
    which precision (bf16 on a GPU alone)."""

    masks: bool
    score: float
    batch: int
    precision: str


@dataclass(frozen=True)
class Scale:
    """A scale with its name.

    seeds: those that count for verdicts; others are pilots
    dets_per_image, dets_per_class: of AP-Old, and of AP-Fixed and AP-Pool
    sets: what is drawn, by name; that of a config's name is its, "main" that of all others
    """

    name: str
    title: str
    seeds: tuple[int, ...]
    dets_per_image: int
    dets_per_class: int
    predict: Prediction
    sets: Mapping[str, SetSettings] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)
    replaced: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def set_of(self, name: str) -> str:
        """The set that a config is trained and evaluated on."""
        return name if name in self.sets else MAIN

    def config(self, name: str, seed: int) -> Config:
        """A shipped config at this scale."""
        shipped = read_config(Path(name))
        flat = flat_values(shipped)
        for key, factor in self.factors.items():
            flat[key] = _times(flat[key], factor)
        for key, values in self.replaced.items():
            flat[key] = values.get(str(flat[key]), flat[key])
        flat |= {**self.settings, "run.seed": seed}
        nested: dict[str, dict[str, Any]] = {}
        for key, value in flat.items():
            section, _, last = key.partition(".")
            nested.setdefault(section, {})[last] = value
        return resolved(nested, (), f"{name} at scale {self.name}", None)

    def limits(self, condition: str) -> Limits:
        """The limits of a condition at this scale."""
        return limits_of(
            condition, self.dets_per_image / LVIS_PER_IMAGE, self.dets_per_class / FIXED_PER_CLASS
        )


def scale_names() -> list[str]:
    """The names of all scales."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read_scale(name: str) -> Scale:
    """The scale with the given name."""
    if name not in scale_names():
        raise InputError(f"--scale is {name!r}, expected one of {', '.join(scale_names())}")
    values = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    budgets = values["budgets"]
    return Scale(
        name=name,
        title=values["title"],
        seeds=tuple(values["seeds"]),
        dets_per_image=budgets["image"],
        dets_per_class=budgets["class"],
        predict=Prediction(**values["predict"]),
        sets={key: SetSettings(**one) for key, one in values.get("sets", {}).items()},
        settings=values.get("settings", {}),
        factors=values.get("factors", {}),
        replaced=values.get("replaced", {}),
    )


def _times(value: Any, factor: float) -> Any:
    """A number times a factor, whole where it was, at least 1 then; of several what is left
    different."""
    if isinstance(value, tuple):
        return tuple(sorted({_times(item, factor) for item in value}))
    if isinstance(value, int):
        return max(1, round(value * factor))
    return min(1.0, value * factor)
