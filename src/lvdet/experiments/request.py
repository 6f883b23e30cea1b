"""A request: which experiments, at which scale, and how their runs are carried out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from lvdet.errors import InputError
from lvdet.experiments.experiment_table import ExperimentTables
from lvdet.experiments.image_sources import make_sets
from lvdet.experiments.one_run import Workshop
from lvdet.experiments.paper_item import ALL, Experiment, chosen
from lvdet.experiments.result_files import ResultSet, read_results, write_results
from lvdet.experiments.run_graph import FIRST_PILOT, Graph, Run, graph, part_of_graph
from lvdet.experiments.scale import Scale, read_scale
from lvdet.experiments.several_runs import Job, collect_left, make_at_once, make_in_turn
from lvdet.files.locking import make_and_lock
from lvdet.files.progress import Progress
from lvdet.files.writing import make_folder


@dataclass(frozen=True)
class Request:
    """Experiments by name, and how to obtain their results.

    out:      folder of results and tables
    work:     folder of images and checkpoints, which may be removed
    known:    more folders with results, whose runs are not made again
    jobs:     trainings at once
    only:     "i/n": the i-th of n parts of the runs
    seeds:    those to run; none: the scale's
    deadline: seconds since `started` after which nothing is left running
    say:      called after every finished run
    """

    names: tuple[str, ...]
    scale_name: str
    out: Path
    work: Path
    known: tuple[Path, ...] = ()
    jobs: int = 1
    only: str = "1/1"
    seeds: tuple[int, ...] = ()
    device: str | None = None
    deadline: float | None = None
    started: float = field(default_factory=time.monotonic)
    say: Callable[[str], None] = field(default=lambda text: None)

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InputError(f"--jobs is {self.jobs}, expected 1 or more")
        if self.deadline is not None and self.deadline <= 0:
            raise InputError(
                f"--deadline is {self.deadline:g}, expected a positive number of seconds"
            )
        part_of_graph(self.only)
        unknown = [one for one in self.seeds if one < FIRST_PILOT and one not in self.scale.seeds]
        if unknown:
            own = ", ".join(map(str, self.scale.seeds))
            raise InputError(
                f"--seeds has {unknown[0]}, expected seeds of scale {self.scale_name} ({own}), or "
                f"pilots from {FIRST_PILOT} on"
            )

    @cached_property
    def scale(self) -> Scale:
        """The scale with the given name."""
        return read_scale(self.scale_name)

    @cached_property
    def experiments(self) -> list[Experiment]:
        """The experiments, each once."""
        return chosen(self.names)

    @cached_property
    def graph(self) -> Graph:
        """The graph of all their runs."""
        return graph(self.experiments, self.scale, self.seeds or self.scale.seeds)

    @cached_property
    def results(self) -> ResultSet:
        """The existing results."""
        return read_results([*self.known, self.out])

    @property
    def missing(self) -> list[Run]:
        """The runs that are not done."""
        parts = self.graph.parts
        return [run for run in self.graph.runs if not self.results.done(run, parts[run.key])]

    def chains(self) -> list[list[Run]]:
        """The missing runs of this part of the graph, grouped by the run that must be trained
        first."""
        return self.graph.chains(self.missing, part_of_graph(self.only))

    @property
    def _end(self) -> float | None:
        return None if self.deadline is None else self.started + self.deadline

    def tables(self) -> ExperimentTables:
        """The tables, from the finished runs."""
        keys = [run.key for run in self.graph.runs]
        mine = self.results.of_scale(self.scale.name, keys)
        return ExperimentTables.of(self.experiments, self.scale, mine)

    def carry_out(self, progress: Progress | None = None) -> ExperimentTables:
        """Carries out the missing runs; returns the tables of everything then available."""
        mine = read_results([self.out]).of_scale(self.scale.name)
        make_folder(self.out)
        try:
            with make_and_lock(self.work, ".lock", "making runs"):
                self._make(mine, progress)
        finally:
            tables = self.tables()
            for ending in (".json", ".md", ".tex"):
                tables.save(self.out / f"tables{ending}")
        return tables

    def _make(self, mine: ResultSet, progress: Progress | None) -> None:
        """Carries out missing runs; each result is written beside `mine` as soon as it is
        available."""

        def finished(result: dict[str, Any]) -> None:
            self.results.add(result)
            mine.add(result)
            write_results(mine, self.out / f"{self.scale.name}.json")
            seconds = result["provenance"]["seconds"]
            took = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
            self.say(f"{result['names'][0]}, seed {result['seed']}: {took}")

        collect_left(self.work, finished)
        chains = self.chains()
        workshop = Workshop(self.work, self.device)
        sets = [run.set for chain in chains for run in chain]
        make_sets(self.scale, sets, workshop.images, progress)
        conditions = tuple(sorted({at for one in chosen([ALL]) for _, at in one.wanted()}))
        jobs = [Job(self.graph, tuple(chain), conditions, workshop) for chain in chains]
        if self.jobs == 1 and self.deadline is None:
            make_in_turn(jobs, finished, progress)
        else:
            make_at_once(jobs, finished, self.jobs, self._end, progress)
