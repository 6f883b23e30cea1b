"""The paper's claims as statements that results can be tested against: `claims.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "claims.toml"


@dataclass(frozen=True)
class Claim:
    """A statement on an effect, in points: a sum over configs, each with its weight, of a
    combination of metrics, each a condition and a metric with its weight.

    sign:   1: more than `bound`, -1: less
    margin: in place of a sign: less than that either way
    paper:  the paper's own effect, where its tables have it
    """

    name: str
    experiment: str
    statement: str
    metrics: Mapping[str, float]
    configs: Mapping[str, float]
    sign: int = 0
    bound: float = 0.0
    margin: float = 0.0
    paper: float | None = None

    @property
    def terms(self) -> list[tuple[str, str, float]]:
        """The condition, metric and weight of each term."""
        found = []
        for key, weight in self.metrics.items():
            condition, _, metric = key.rpartition("/")
            found.append((condition, metric, weight))
        return found


@cache
def all_claims() -> tuple[Claim, ...]:
    """All claims, in the paper's order."""
    content = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(Claim(**values) for values in content["claims"])
