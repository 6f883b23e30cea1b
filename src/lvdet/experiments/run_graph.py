"""Which trainings experiments need, and which of them share one.

A run is a config at a scale with a seed: trained once, evaluated once. Its key is a hash of
everything that its numbers depend on; two configs with the same key are one run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lvdet import __version__
from lvdet.errors import InputError
from lvdet.experiments.conditions import PARTS
from lvdet.experiments.paper_item import ALL, Experiment, chosen
from lvdet.experiments.scale import Scale
from lvdet.files.fingerprint import fingerprints
from lvdet.training.configuration.config import Config
from lvdet.training.configuration.config_file import flat_values
from lvdet.training.records.run_folder import FREE

#: Increases when runs are made or measured differently, so that earlier results are not mixed in.
PROCEDURE = 1
#: From here on, seeds are pilots: they are measured in full, and no verdict counts them.
FIRST_PILOT = 100
#: Keys that do not affect the numbers: those that may change when a run resumes, except its first
#: weights and its length.
_FREE = FREE - {"model.weights", "schedule.steps"}


@dataclass(frozen=True)
class Run:
    """A config at a scale, with a seed.

    set:    the name of its images
    parent: the first phase of a retraining
    key:    a hash of everything that its numbers depend on
    """

    name: str
    seed: int
    config: Config
    set: str
    parent: Run | None
    key: str

    @property
    def root(self) -> Run:
        """The run to train first: the parent, or the run itself."""
        return self.parent or self

    def __str__(self) -> str:
        return f"{self.name}, seed {self.seed}"


@dataclass(frozen=True)
class Graph:
    """The runs of experiments at a scale, the most informative first.

    parts: the measurements of each run, by key
    names: the other names of each run, by key
    """

    scale: Scale
    runs: tuple[Run, ...]
    parts: dict[str, tuple[str, ...]]
    names: dict[str, tuple[str, ...]]

    def chains(self, wanted: Iterable[Run], only: tuple[int, int] = (1, 1)) -> list[list[Run]]:
        """The requested runs, grouped by the run to train first; part i of n."""
        found: dict[str, list[Run]] = {}
        keys = {run.key for run in wanted}
        for run in self.runs:
            found.setdefault(run.root.key, [])
            if run.key in keys:
                found[run.root.key].append(run)
        for chain in found.values():
            chain.sort(key=lambda run: run.parent is not None)  # the root first
        number, count = only
        mine = list(found.values())[number - 1 :: count]
        return [chain for chain in mine if chain]


class Runs:
    """Creates the runs of a scale, each once."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale
        self._made: dict[tuple[str, int], Run] = {}
        self._hashes: dict[tuple[str, str], list[str]] = {}

    def run(self, name: str, seed: int) -> Run:
        """The run of a config."""
        if (name, seed) not in self._made:
            config = self._scale.config(name, seed)
            first = config.retrain.checkpoint
            parent = self.run(_phase_one(first), seed) if first else None
            where = self._scale.set_of(name)
            identity = {
                "config": {k: v for k, v in flat_values(config).items() if k not in _FREE},
                "parent": parent and parent.key,
                "images": self._images(where, config),
                "budgets": [self._scale.dets_per_image, self._scale.dets_per_class],
                "predict": vars(self._scale.predict) | {"batch": None},
                "code": [__version__, PROCEDURE],
            }
            text = json.dumps(identity, sort_keys=True)
            key = hashlib.sha256(text.encode()).hexdigest()[:16]
            self._made[name, seed] = Run(name, seed, config, where, parent, key)
        return self._made[name, seed]

    def _images(self, where: str, config: Config) -> Any:
        """What images are: the settings of a set that is drawn, or annotations' hashes."""
        if where in self._scale.sets:
            return self._scale.sets[where].to_dict()
        files = config.data.train, config.data.val
        if files not in self._hashes:
            self._hashes[files] = [str(one["hash"]) for one in fingerprints(files)]
        return self._hashes[files]


def graph(experiments: Sequence[Experiment], scale: Scale, seeds: Sequence[int]) -> Graph:
    """The runs that experiments need, seed by seed. Each run measures everything that any
    experiment of the paper needs, so that no run is repeated."""
    runs = Runs(scale)
    parts: dict[str, set[str]] = {}
    called: dict[str, set[str]] = {}
    for one in chosen([ALL]):
        for seed in _counted(one, scale, seeds):
            for name, needed in one.needs().items():
                run = runs.run(name, seed)
                parts.setdefault(run.key, set()).update(needed)
                called.setdefault(run.key, set()).add(name)
    found: dict[str, Run] = {}
    for one in experiments:
        for seed in _counted(one, scale, seeds):
            for name in one.needs():
                run = runs.run(name, seed)
                found.setdefault(run.key, run)
    return Graph(
        scale,
        tuple(found.values()),
        {key: tuple(part for part in PARTS if part in parts[key]) for key in found},
        {key: tuple(sorted(called[key])) for key in found},
    )


def part_of_graph(text: str) -> tuple[int, int]:
    """Parses a part such as "2/3"."""
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise InputError(f"--only is {text!r}, expected i/n such as 1/3")
    return int(number), int(count)


def _counted(one: Experiment, scale: Scale, seeds: Sequence[int]) -> list[int]:
    """The seeds that an experiment uses of those requested: its number of seeds from the scale's,
    and pilots."""
    mine = scale.seeds[: one.seeds]
    return [seed for seed in seeds if seed in mine or seed >= FIRST_PILOT]


def _phase_one(checkpoint: str) -> str:
    """The config of a first phase, from where its checkpoint is looked for."""
    return Path(checkpoint).name
