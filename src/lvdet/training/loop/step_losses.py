"""The losses of recent steps, kept on the device until they are needed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from lvdet.errors import LvdetError
from lvdet.training.loop.processes import mean_over_processes


class NotFiniteError(LvdetError):
    """A loss or a weight is not finite."""


@dataclass
class StepLosses:
    """Losses of steps that the host has not read yet, and how long the steps took.

    A GPU runs behind the host, and reading a number waits for the GPU. So numbers stay tensors, and
    are read together.
    """

    names: tuple[str, ...] = ()
    rows: list[Tensor] = field(default_factory=list)
    fetched: list[list[float]] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    waited: float = 0.0

    def add(self, losses: dict[str, Tensor]) -> None:
        """Records the losses of a step."""
        self.names = tuple(losses)
        self.rows.append(torch.stack([*losses.values()]))

    def fetch(self, step: int) -> None:
        """Fetches the recorded losses as means over the processes; raises for a loss that is not
        finite.

        step: the steps done so far
        """
        if not self.rows:
            return
        table = mean_over_processes(torch.stack(self.rows)).tolist()
        self.rows.clear()
        for number, row in enumerate(table, start=step - len(table) + 1):
            for name, value in zip(self.names, row, strict=True):
                if not abs(value) < float("inf"):
                    raise NotFiniteError(f"loss {name} is {value} in step {number:,}")
        self.fetched += table

    def finish(self) -> tuple[dict[str, float], float, float]:
        """The mean losses since the last call, the seconds they took, and the share of that time
        spent waiting for data; then starts over."""
        now = time.monotonic()
        seconds, count = now - self.started, max(len(self.fetched), 1)
        columns = zip(*self.fetched, strict=True)
        means = {
            name: sum(column) / count for name, column in zip(self.names, columns, strict=False)
        }
        waited = self.waited / max(seconds, 1e-9)
        self.fetched, self.started, self.waited = [], now, 0.0
        return means, seconds, min(1.0, waited)


def require_finite(tensors: Mapping[str, Tensor]) -> None:
    """Raises if one of the tensors contains a number that is not finite."""
    if not tensors:
        return
    good = torch.stack([torch.isfinite(tensor).all() for tensor in tensors.values()]).tolist()
    for name, finite in zip(tensors, good, strict=True):
        if not finite:
            raise NotFiniteError(f"weights {name} are not finite")
