"""A detector's place in the loop, taken by a few weights: quick, with noise like the real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lvdet.training.configuration.config import Config, Data, Run, Schedule
from lvdet.training.data.batch import Batch
from lvdet.training.loop.loop import Training
from lvdet.training.loop.optimizer import build_optimizer
from lvdet.training.loop.processes import Process
from lvdet.training.model.classifier import Frequencies
from lvdet.training.records.log import Log
from lvdet.training.records.vocabulary import Vocabulary

CPU = Process(0, 1, torch.device("cpu"))


class StandIn(nn.Module):
    """Two losses of a batch's seeds, one with random numbers in it.

    fail: called with the number of each forward, from 1
    """

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 2)
        self.calls = 0
        self.fail: Any = None

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        self.calls += 1
        factor = self.fail(self.calls) if self.fail else None
        x = batch.seed[:, None, None, None].float().expand(-1, 1, 4, 4) / 10
        x = self.norm(self.body(x + torch.rand_like(x))).mean(dim=(2, 3))
        out = self.head(x)
        first = out[:, 0].square().mean()
        return {
            "first": first * (1 if factor is None else factor),
            "second": out[:, 1].exp().mean(),
        }


def batches(start: int, steps: int, size: int = 4) -> Iterator[Batch]:
    for step in range(start, steps):
        seed = torch.arange(step * size, (step + 1) * size)
        yield Batch(torch.zeros(size, 3, 1, 1, dtype=torch.uint8), torch.ones(size, 2), seed)


def vocabulary() -> Vocabulary:
    counts = np.array([3, 5])
    return Vocabulary(np.array([1, 4]), ["cat", "dog"], None, Frequencies(6, counts, counts))


def config(**run: Any) -> Config:
    """Twelve steps of four images."""
    return Config(
        data=Data("/train.json", "/images"),
        schedule=Schedule(steps=12, batch=4, rate=0.05, warmup_steps=3, milestones=(8,)),
        run=Run(**{"log_every": 3, "checkpoint_every": 4, "keep": 2, **run}),
    )


def training(folder: Path, what: Config, **others: Any) -> Training:
    """A run with a new stand-in; the same one each time."""
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = others.pop("model", None) or StandIn()
    return Training(
        config=what,
        folder=folder,
        process=CPU,
        detector=model,
        model=model,
        optimizer=build_optimizer(model, what.schedule),
        vocabulary=vocabulary(),
        log=Log(folder / "log.jsonl", others.get("step", 0)),
        **others,
    )
