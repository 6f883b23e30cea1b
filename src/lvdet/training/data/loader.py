"""The batches of a training run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from lvdet.errors import InputError
from lvdet.tables.masks import NONE
from lvdet.training.configuration.config import Config
from lvdet.training.data.batch import TILE, Batch
from lvdet.training.data.collate import collate
from lvdet.training.data.dataset import Dataset
from lvdet.training.data.loader_workers import work_ahead
from lvdet.training.data.training_samples import make_sample
from lvdet.training.samplers import build_sampler, stream

#: Objects of an image that memory is planned for; there may be more.
_OBJECTS = 50


class Loader:
    """One process's batches for the steps from `start_step` up to `steps` (exclusive).

    A step has `config.schedule.batch` images in all, which come from the sampler's endless
    stream; process number `rank` of `world` has its equal part of them. What is random about a
    sample depends on the seed and its position in the stream: neither the number of processes
    nor the step a run was resumed at changes it.
    """

    def __init__(
        self,
        dataset: Dataset,
        config: Config,
        *,
        start_step: int = 0,
        steps: int | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        if config.schedule.batch < 1 or config.schedule.batch % world:
            raise InputError(
                f"schedule.batch is {config.schedule.batch}, not a multiple of the {world} "
                "processes"
            )
        missing = int(np.count_nonzero(dataset.masks.kind == NONE))
        if config.model.masks and missing:
            raise InputError(
                f"{dataset.name}: {missing:,} of {len(dataset.masks):,} annotations have no mask; "
                "set model.masks = false to train without masks"
            )
        self._dataset = dataset
        self._config = config
        self._sampler = build_sampler(config.sampler, dataset)
        self._steps = range(start_step, config.schedule.steps if steps is None else steps)
        self._share = config.schedule.batch // world
        self._skip = rank * self._share

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Batch]:
        make = partial(_make_batch, self._dataset, self._config)
        return work_ahead(make, self._jobs, self._config.run.workers, self._bytes())

    def _jobs(self) -> Iterator[list[tuple[int, int]]]:
        """For each step, the rows of its images and their positions in the stream."""
        whole = self._config.schedule.batch
        rows = stream(self._sampler, self._config.run.seed, self._steps.start * whole)
        for step in self._steps:
            of_step = list(islice(rows, whole))
            first = step * whole
            yield [(of_step[i], first + i) for i in range(self._skip, self._skip + self._share)]

    def _bytes(self) -> int:
        """The bytes of a batch of large images, with a quarter of the most objects."""
        options = self._config.input
        largest = max(options.sizes)
        other = largest if options.by == "longest" else max(largest, options.largest)
        return self._share * (3 * largest * other + _OBJECTS * TILE * TILE)


def _make_batch(dataset: Dataset, config: Config, job: list[tuple[int, int]]) -> Batch:
    return collate([make_sample(dataset, row, position, config) for row, position in job])
