"""A run in progress: its steps, log, checkpoints and evaluations."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import nn

from lvdet.errors import LvdetError
from lvdet.training.configuration.config import Config
from lvdet.training.data.batch import Batch
from lvdet.training.loop.device_batches import device_batches
from lvdet.training.loop.failures import explained, loading_failed
from lvdet.training.loop.optimizer import momenta
from lvdet.training.loop.processes import Process
from lvdet.training.loop.retraining import fix_statistics
from lvdet.training.loop.schedule import rate_at, resolved_schedule
from lvdet.training.loop.step import descend, differentiate, precision_on, step_seed
from lvdet.training.loop.step_graphs import StepGraphs
from lvdet.training.loop.step_losses import StepLosses, require_finite
from lvdet.training.loop.stopping import Stop, StoppedError
from lvdet.training.records.checkpoint import (
    Described,
    checkpoint_after,
    checkpoints,
    save_checkpoint,
)
from lvdet.training.records.live_line import LiveLine, evaluation_text
from lvdet.training.records.log import Log
from lvdet.training.records.run_folder import config_hash, remove_predictions
from lvdet.training.records.vocabulary import Vocabulary

if TYPE_CHECKING:
    from lvdet.training.model.detector import Detector

#: Takes the detector in eval mode, the config, the run's folder, the steps so far and the process;
#: returns the entries for the log, where only the first process's count.
Evaluate = Callable[["Detector", Config, Path, int, Process], dict[str, Any]]

#: Steps between checks of the losses if nothing is logged.
UNLOGGED = 100

#: What a process that cannot load its batch tells the others: lower than any signal it catches.
FAILED = 1


@dataclass
class Training:
    """A run in progress.

    model: the detector, or its wrapper for several processes
    step:  steps done so far
    log, line: only used by the first process
    """

    config: Config
    folder: Path
    process: Process
    detector: Detector
    model: nn.Module
    optimizer: torch.optim.SGD
    vocabulary: Vocabulary
    step: int = 0
    evaluate: Evaluate | None = None
    log: Log | None = None
    line: LiveLine | None = None
    stop: Stop = field(default_factory=Stop)

    def __post_init__(self) -> None:
        self.losses = StepLosses()
        self.schedule = resolved_schedule(self.config)
        self.precision = precision_on(self.process.device, self.config.run.precision)
        self.graphs = self._graphs()
        # Layers that stay in float32, such as the last, multiply in TF32 on a GPU.
        torch.set_float32_matmul_precision("high")

    def run_steps(self, batches: Iterable[Batch]) -> None:
        """Runs all remaining steps; logs, saves and evaluates on schedule and at the end."""
        every, steps = self.config.run, self.schedule.steps
        try:
            if self._evaluation_is_missing():
                self._evaluate()
            self._train_mode()
            with explained(self):
                source = iter(device_batches(batches, self.process.device, every.channels_last))
                while self.step < steps:
                    self.train_step(self._next(source))
                    self.step += 1
                    end = self.step == steps
                    if self.step % (every.log_every or UNLOGGED) == 0 or end:
                        self._record()
                    evaluated = self.evaluate is not None and _due(self.step, every.evaluate_every)
                    if end or evaluated or _due(self.step, every.checkpoint_every):
                        self._save()
                    if end or evaluated:
                        self._evaluate()
        finally:
            if self.line is not None:
                self.line.end()

    def _next(self, source: Iterator[Batch]) -> Batch:
        """The next batch. If one process received a signal or cannot load its part, all processes
        learn so here, between two steps, save the finished steps and raise."""
        started = time.monotonic()
        batch: Batch | None = None
        failure: Exception | None = None
        try:
            if not self.stop.signal:
                batch = next(source)
        except StopIteration:
            failure = LvdetError(f"the data ended before step {self.step + 1:,}")
        except (LvdetError, OSError, MemoryError) as error:
            failure = error
        signal = self.process.largest(self.stop.signal or (FAILED if failure else 0))
        self.losses.waited += time.monotonic() - started
        if signal == FAILED:
            raise loading_failed(failure, self.keep_finished()) from None
        if signal or batch is None:
            self._end(signal)
        return batch

    def train_step(self, batch: Batch) -> None:
        """Runs one step with a batch on the device."""
        torch.manual_seed(step_seed(self.config.run.seed, self.step))
        losses = self.graphs.differentiate(batch) if self.graphs is not None else None
        if losses is None:
            parts = self.schedule.accumulate
            losses = differentiate(self.model, self.detector, batch, self.precision, parts)
        self.losses.add(losses)
        rate = rate_at(self.schedule, self.step)
        descend(self.model, self.optimizer, rate, self.schedule.clip)

    def _graphs(self) -> StepGraphs | None:
        """CUDA graphs of steps, for a GPU that processes all images of a step at once."""
        whole = self.process.world == 1 and self.schedule.accumulate == 1
        if self.process.device.type != "cuda" or not whole or not self.config.run.cuda_graphs:
            return None
        return StepGraphs(self.detector, self.precision)

    def _train_mode(self) -> None:
        self.model.train()
        if self.config.retrain.checkpoint:
            fix_statistics(self.model)

    def _record(self) -> None:
        """Logs the steps since the last record."""
        self.losses.fetch(self.step)
        count = len(self.losses.fetched)
        means, seconds, waited = self.losses.finish()
        if self.log is None or not self.config.run.log_every or not count:
            return
        cuda = self.process.device.type == "cuda"
        record = {
            "step": self.step,
            "time": time.time(),
            "images": self.step * self.schedule.batch,
            "rate": rate_at(self.schedule, self.step - 1),
            "losses": means,
            "images_per_s": count * self.schedule.batch / seconds,
            "data_wait": waited,
            "gpu_memory": torch.cuda.max_memory_allocated() if cuda else None,
        }
        self.log.write(record)
        if self.line is not None:
            left = (self.schedule.steps - self.step) * seconds / count
            self.line.record({**record, "seconds_left": left}, self.schedule.steps)

    def _save(self) -> None:
        """Saves a checkpoint, unless a loss or a weight is not finite."""
        self.losses.fetch(self.step)
        target = checkpoint_after(self.folder, self.step)
        if not self.process.first or not self.step or target in checkpoints(self.folder):
            return
        remembered = momenta(self.detector, self.optimizer)
        parameters = dict(self.detector.named_parameters())
        require_finite(
            {name: parameters[name] for name in remembered}
            | {f"of the momentum of {name}": tensor for name, tensor in remembered.items()}
        )
        fixed = tuple(name for name, p in parameters.items() if not p.requires_grad)
        save_checkpoint(
            self.folder,
            self.detector,
            remembered,
            Described(self.config, self.vocabulary, self.step, fixed),
            {
                "images": self.step * self.schedule.batch,
                "config": config_hash(self.config),
                "processes": self.process.world,
                "precision": self.precision,
                "torch": torch.__version__,
                "time": time.time(),
            },
            self.config.run.keep,
        )

    def _end(self, number: int) -> NoReturn:
        """Saves and stops because of a signal; no process ends before the first one has written."""
        self._save()
        self.process.wait_for_all()
        steps = f"{self.step:,} of {self.schedule.steps:,} steps"
        raise StoppedError(
            f"stopped after {steps}; --resume continues from "
            f"{checkpoint_after(self.folder, self.step)}"
            if self.step
            else "stopped before the first step; --resume starts over",
            number,
        )

    def keep_finished(self) -> str:
        """Saves the finished steps if possible; names the last checkpoint. All processes call this
        together."""
        with suppress(LvdetError, RuntimeError):
            self._save()
        self.process.wait_for_all()
        return self.last_good()

    def last_good(self) -> str:
        """The last checkpoint, in words."""
        found = checkpoints(self.folder)
        return (
            f"the last good checkpoint is {found[-1]}" if found else "no checkpoint was written yet"
        )

    def _evaluation_is_missing(self) -> bool:
        """Whether a run was killed during an evaluation, which is then repeated."""
        due = self.step == self.schedule.steps or _due(self.step, self.config.run.evaluate_every)
        if self.evaluate is None or not due or not self.step:
            return False
        missing = self.log is not None and not self.log.evaluated(self.step)
        return bool(self.process.largest(missing))

    def _evaluate(self) -> None:
        """All processes predict and the first one evaluates. A signal postpones the evaluation
        until the run resumes."""
        if self.evaluate is None:
            return
        number = self.process.largest(self.stop.signal)
        if number:
            self._end(number)
        if self.line is not None:
            self.line.end()
        started = time.monotonic()
        self.detector.eval()
        with self.process.together():
            outcome = self.evaluate(
                self.detector, self.config, self.folder, self.step, self.process
            )
            if self.log is not None:
                seconds = time.monotonic() - started
                record = {"step": self.step, "time": time.time(), "seconds": seconds}
                self.log.write({**record, "evaluation": outcome})
                remove_predictions(self.folder, self.config.run.keep)
                if self.line is not None:
                    self.line.say(evaluation_text(self.step, outcome))
        self.losses.started += time.monotonic() - started
        self._train_mode()


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0
