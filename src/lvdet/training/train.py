"""Trains a detector, from a config to the last checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch

from lvdet.errors import InputError
from lvdet.files.progress import Progress
from lvdet.training.configuration.config import GROUPED, Config
from lvdet.training.loop.initial_weights import begin_model, settled
from lvdet.training.loop.loop import Evaluate, Training
from lvdet.training.loop.optimizer import build_optimizer, load_momenta
from lvdet.training.loop.processes import Process, joined, parallel
from lvdet.training.loop.schedule import require_full_rate, resolved_schedule
from lvdet.training.loop.step import step_seed
from lvdet.training.loop.stopping import stopping
from lvdet.training.records.checkpoint import checkpoint_after
from lvdet.training.records.live_line import LiveLine
from lvdet.training.records.log import Log
from lvdet.training.records.run_folder import (
    LOG,
    clear,
    locked,
    require_new,
    require_own,
    resumed,
    write_config,
)
from lvdet.training.records.scalars import Scalars
from lvdet.training.records.tensor_file import read_tensors
from lvdet.training.records.vocabulary import Vocabulary

#: Takes the config, the classes of the training set and the progress; raises where the validation
#: data cannot be evaluated on.
Check = Callable[[Config, Vocabulary, Progress | None], None]


def train(
    config: Config,
    folder: Path,
    *,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    evaluate: Evaluate | None = None,
    check: Check | None = None,
    line: LiveLine | None = None,
    progress: Progress | None = None,
) -> Path:
    """Trains a detector and returns the folder of the last checkpoint.

    device:    "cuda" or "cpu"; None: a GPU if there is one
    resume:    from the last checkpoint in the folder, if there is one
    overwrite: remove the run that is in the folder
    evaluate:  called where the config has validation data, at every `run.evaluate_every` steps and
               at the end
    check:     looks at the validation data before the first step
    line, progress: show losses, and how reading and evaluation proceed

    Under torchrun, the processes share each batch. Everything random depends on the seed and the
    step: a run that was killed and resumed has the weights of one that was not.
    """
    from lvdet.training.data.loader import Loader
    from lvdet.training.data.training_annotations import read_dataset

    if device not in (None, "cuda", "cpu"):
        raise InputError(f"device is {device!r}, expected cuda or cpu")
    require_full_rate(resolved_schedule(config))
    with joined(device) as process, stopping() as stop:
        _require_whole_shares(config, process.world)
        if process.first:
            (require_own if resume or overwrite else require_new)(folder)
        annotations = Path(config.data.train)
        dataset = read_dataset(
            annotations,
            Path(config.data.train_images),
            progress=progress if process.first else None,
        )
        vocabulary = Vocabulary.of(dataset)
        if process.first and check is not None and config.data.val:
            check(config, vocabulary, progress)
        with locked(folder) if process.first else nullcontext():
            going_on = resumed(folder, config, vocabulary) if resume else None
            checkpoint = None
            if going_on is not None:
                checkpoint, config = going_on.checkpoint, going_on.config
            else:
                config = settled(config)
            torch.manual_seed(step_seed(config.run.seed, -1))
            start = begin_model(config, vocabulary, checkpoint, process)
            optimizer = build_optimizer(start.detector, config.schedule)
            if checkpoint is not None:
                file = checkpoint / "optimizer.safetensors"
                load_momenta(start.detector, optimizer, read_tensors(file)[0], file)
            _require_one_step(process, start.step, folder)  # all have read what may be removed now
            log = None
            if process.first:
                if checkpoint is None:
                    clear(folder)
                write_config(folder, config)
                scalars = Scalars(folder, start.step) if config.run.tensorboard else None
                log = Log(folder / LOG, start.step, scalars)
            run = Training(
                config=config,
                folder=folder,
                process=process,
                detector=start.detector,
                model=parallel(start.detector, process),
                optimizer=optimizer,
                vocabulary=vocabulary,
                step=start.step,
                evaluate=evaluate if config.data.val else None,
                log=log,
                line=line if process.first else None,
                stop=stop,
            )
            loader = Loader(
                dataset,
                config,
                start_step=start.step,
                steps=config.schedule.steps,
                rank=process.rank,
                world=process.world,
            )
            run.run_steps(loader)
    return checkpoint_after(folder, config.schedule.steps)


def _require_whole_shares(config: Config, processes: int) -> None:
    """Raises for a batch that cannot be divided equally among processes, parts and groups of
    images."""
    batch, parts, group = (
        config.schedule.batch,
        config.schedule.accumulate,
        config.classifier.group_images,
    )
    if batch % (processes * parts):
        times = f" times schedule.accumulate, {parts}" if parts > 1 else ""
        raise InputError(
            f"schedule.batch is {batch}, not a multiple of the {processes} processes{times}"
        )
    share = batch // (processes * parts)
    if config.classifier.loss in GROUPED and share % group:
        raise InputError(
            f"schedule.batch is {batch}, {share} images at a time in each process, not a multiple "
            f"of classifier.group_images, {group}"
        )


def _require_one_step(process: Process, step: int, folder: Path) -> None:
    """Raises if processes would resume from different steps."""
    last, first = process.largest(step), -process.largest(-step)
    if first != last:
        raise InputError(
            f"{folder}: process {process.rank} would resume from step {step:,}, others from "
            f"{last if step == first else first:,}; put the run folder (-o) on a shared disk"
        )
