"""Which runs are done, which are missing, and how long they will take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from lvdet.experiments.request import Request
from lvdet.experiments.result_files import RunResult
from lvdet.experiments.run_graph import Run
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout


@dataclass(frozen=True, eq=False, repr=False)
class RunStatus(Result):
    """One line per run: what is measured, and whether it is done.

    seconds: that it took, or probably takes; NaN where nothing like it was run
    """

    runs: list[Run]
    done: list[bool]
    parts: list[tuple[str, ...]]
    seconds: list[float]
    jobs: int
    inputs: dict[str, Any]
    warnings: list[str]

    @classmethod
    def of(cls, request: Request) -> RunStatus:
        """The status of a request."""
        runs, results = [*request.graph.runs], request.results
        parts = [request.graph.parts[run.key] for run in runs]
        done = [results.done(run, part) for run, part in zip(runs, parts, strict=True)]
        known = [*results.of_scale(request.scale.name)]
        seconds = [_seconds(run, part, known) for run, part in zip(runs, parts, strict=True)]
        inputs = {"scale": request.scale.name, "experiments": [*request.names]}
        return cls(runs, done, parts, seconds, request.jobs, inputs, [])

    def title(self) -> str:
        """How many runs are done, and how long the others will take."""
        left = [s for s, done in zip(self.seconds, self.done, strict=True) if not done]
        text = f"scale {self.inputs['scale']}: {sum(self.done):,} of {len(self.runs):,} runs done"
        if not left:
            return text
        if any(map(math.isnan, left)):
            return f"{text}; the time of some is unknown until a similar run is done"
        at_once = f" with {self.jobs} at once" if self.jobs > 1 else ""
        return f"{text}; about {sum(left) / self.jobs / 60:,.0f} min left{at_once}"

    def layouts(self) -> list[Layout]:
        """The list of runs."""
        head = ["run", "seed", "key", "measured", "", "seconds"]
        lines = [
            [
                Cell(run.name),
                Cell(str(run.seed)),
                Cell(run.key),
                Cell(", ".join(("AP", *part))),
                Cell("done" if done else "missing"),
                Cell("–" if math.isnan(seconds) else f"{seconds:,.0f}"),
            ]
            for run, done, part, seconds in zip(
                self.runs, self.done, self.parts, self.seconds, strict=True
            )
        ]
        return [Layout("", "runs", head, lines)] if lines else []

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where unknown."""
        return {
            "inputs": self.inputs,
            "runs": [
                {
                    "config": run.name,
                    "seed": run.seed,
                    "key": run.key,
                    "parts": [*part],
                    "done": done,
                    "seconds": None if math.isnan(seconds) else seconds,
                }
                for run, done, part, seconds in zip(
                    self.runs, self.done, self.parts, self.seconds, strict=True
                )
            ],
        }


def _seconds(run: Run, parts: tuple[str, ...], known: Sequence[RunResult]) -> float:
    """The time the run took, or that runs of the same network took per step; preferably with the
    same parts."""
    alike = [one for one in known if _same_network(one, run)]
    same = [one for one in alike if tuple(one["parts"]) == parts]
    own = [one for one in known if one["key"] == run.key]
    steps = run.config.schedule.steps
    found = [
        took["training"] * steps / one["provenance"]["config"]["schedule.steps"]
        + took["predicting"]
        + took["measuring"]
        for one in own or same or alike
        for took in [one["provenance"]["seconds"]]
    ]
    return float(mean(found)) if found else math.nan


def _same_network(one: RunResult, run: Run) -> bool:
    """Whether a result has the same network with the same parts trained."""
    config, model = one["provenance"]["config"], run.config.model
    theirs = (config["model.kind"], config["model.backbone"], one["retrained"])
    return theirs == (model.kind, model.backbone, run.parent is not None)
