"""Tables for figures that show a single image, and for the toy example."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from lvdet.experiments.paper_item import Experiment
from lvdet.experiments.result_files import ResultSet
from lvdet.rendering.table_text import Cell, Layout, plain
from lvdet.studies.account import WORDS
from lvdet.studies.toy_example import toy

_SIDES = {"teaser": ("dropped", "added"), "calibrated": ("before", "after")}


def example_layouts(experiment: Experiment, results: ResultSet) -> list[Layout]:
    """The table of an example; empty before a run has it."""
    if experiment.example == "toy":
        return [_toy(experiment)]
    config = experiment.rows[0].config
    for seed in results.seeds(config, pilots=True):
        found = results.result(config, seed)["examples"].get(experiment.example)
        if found:
            return [_exchange(experiment, found)]
    return []


def _exchange(experiment: Experiment, found: dict[str, Any]) -> Layout:
    """Two lists of detections side by side."""
    left, right = _SIDES[experiment.example]
    head = ["", left, "score", "", right, "score", ""]
    lines = [
        [Cell(str(place)), *_cells(one), *_cells(other)]
        for place, (one, other) in enumerate(zip_longest(found[left], found[right]), start=1)
    ]
    return Layout(experiment.name, f"{experiment.title}: image {found['image']}", head, lines)


def _cells(shown: dict[str, Any] | None) -> Sequence[Cell]:
    if shown is None:
        return [Cell("")] * 3
    outcome = WORDS.get(shown["outcome"], shown["outcome"])
    return [Cell(plain(shown["class"])), Cell(f"{shown['score']:.4f}"), Cell(outcome)]


def _toy(experiment: Experiment) -> Layout:
    head = ["", "budget", "kept", "AP of A", "AP of B", "AP", "paper"]
    lines = [
        [
            Cell(row.ranking),
            Cell(row.budget),
            Cell(" ".join(row.kept)),
            *(Cell(f"{value:.4f}") for value in (row.a, row.b, row.overall)),
            Cell(f"{row.paper:g}"),
        ]
        for row in toy().rows
    ]
    return Layout(experiment.name, experiment.title, head, lines)
