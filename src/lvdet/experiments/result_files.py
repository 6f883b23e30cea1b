"""Files of run results, and queries on them.

A file has any number of results: {"experiment_results": 1, "results": [{"key": …}, …]}.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from lvdet.errors import InputError
from lvdet.experiments.run_graph import FIRST_PILOT, Run
from lvdet.files.writing import write_text

#: The version of the files.
SCHEMA = 1
_MARK = "experiment_results"
RunResult: TypeAlias = Mapping[str, Any]


class ResultSet:
    """Results of runs, the latest for each key."""

    def __init__(self, results: Iterable[RunResult] = ()) -> None:
        self._by_key: dict[str, RunResult] = {}
        for one in results:
            self.add(one)

    def __iter__(self) -> Iterator[RunResult]:
        return iter(self._by_key.values())

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, result: RunResult) -> None:
        """Adds a result; an existing one with more parts is kept."""
        known = self._by_key.get(result["key"])
        if known is None or set(known["parts"]) <= set(result["parts"]):
            self._by_key[result["key"]] = result
            self.__dict__.pop("_by_name", None)

    def done(self, run: Run, parts: Sequence[str]) -> bool:
        """Whether a run has been measured, with these parts."""
        known = self._by_key.get(run.key)
        return known is not None and set(parts) <= set(known["parts"])

    def of_scale(self, scale: str, keys: Iterable[str] | None = None) -> ResultSet:
        """The results at a scale, with these keys only."""
        wanted = None if keys is None else {*keys}
        return ResultSet(
            one
            for one in self
            if one["scale"] == scale and (wanted is None or one["key"] in wanted)
        )

    def seeds(self, name: str, *, pilots: bool = False) -> list[int]:
        """The available seeds of a config; pilots only on request."""
        found = sorted(seed for other, seed in self._by_name if other == name)
        return [seed for seed in found if pilots or seed < FIRST_PILOT]

    def configs(self) -> list[str]:
        """The names of all configs."""
        return sorted({name for name, _ in self._by_name})

    def result(self, name: str, seed: int) -> RunResult:
        """The result of a config with a seed."""
        return self._by_name[name, seed]

    def value(self, name: str, seed: int, condition: str, metric: str) -> float | None:
        """A metric; None if it is undefined or was not measured."""
        found = self._by_name.get((name, seed))
        value = None if found is None else found["measures"].get(condition, {}).get(metric)
        return None if value is None else float(value)

    @cached_property
    def _by_name(self) -> dict[tuple[str, int], RunResult]:
        """By config and seed; the latest one counts."""
        in_time = sorted(self, key=lambda one: str(one["provenance"]["finished"]))
        return {(name, int(one["seed"])): one for one in in_time for name in one["names"]}


def read_results(folders: Iterable[Path]) -> ResultSet:
    """Reads all results in the files of folders; missing folders are empty."""
    found = ResultSet()
    for folder in folders:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: not a folder")
        for path in sorted(folder.glob("*.json")):
            for one in _read(path):
                found.add(one)
    return found


def write_results(results: ResultSet, path: Path) -> None:
    """Writes results atomically, one per line."""
    lines = [json.dumps(one, separators=(",", ":"), ensure_ascii=False) for one in results]
    body = ",\n".join(lines)
    write_text(f'{{"{_MARK}": {SCHEMA}, "results": [\n{body}\n]}}\n', path)


def _read(path: Path) -> list[RunResult]:
    """The results in a file; empty for a file of another kind."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    if not isinstance(content, dict) or _MARK not in content:
        return []
    if content[_MARK] != SCHEMA:
        raise InputError(f"{path}: results of version {content[_MARK]}, expected {SCHEMA}")
    results: list[RunResult] = content["results"]
    return results
