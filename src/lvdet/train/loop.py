"""Training: from a config to the last checkpoint."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from lvdet.errors import InputError, LvdetError
from lvdet.read.files import Progress
from lvdet.train.batch import Batch
from lvdet.train.beginning import begin_model
from lvdet.train.checkpoint import Described, checkpoints, save_checkpoint
from lvdet.train.config import Config
from lvdet.train.device_batches import device_batches
from lvdet.train.live_line import LiveLine, evaluation_text
from lvdet.train.log import Log
from lvdet.train.optimizer import build_optimizer, load_momenta, momenta, set_rate
from lvdet.train.processes import Process, joined, parallel
from lvdet.train.retraining import fix_statistics
from lvdet.train.run_folder import (
    LOG,
    clear,
    config_hash,
    last_checkpoint,
    locked,
    require_new,
    write_config,
)
from lvdet.train.safetensors_file import read_tensors
from lvdet.train.schedule import rate_at, resolved_schedule
from lvdet.train.step_losses import NotFiniteError, StepLosses, require_finite
from lvdet.train.stopping import Stop, StoppedError, stopping
from lvdet.train.vocabulary import Vocabulary

if TYPE_CHECKING:
    from lvdet.train.detector.detector import Detector

#: Takes the detector in eval mode, the config, the run's folder and the steps so far; gives what
#: goes to the log.
Evaluate = Callable[["Detector", Config, Path, int], dict[str, Any]]

#: Takes a title; gives a context with what is called with the bytes that were read.
Watch = Callable[[str], AbstractContextManager[Progress | None]]

#: Steps between looks at the losses where nothing is logged.
UNLOGGED = 100


def train(
    config: Config,
    folder: Path,
    *,
    device: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    evaluate: Evaluate | None = None,
    line: LiveLine | None = None,
    watch: Watch | None = None,
) -> Path:
    """Trains a detector, and gives the folder of the last checkpoint.

    device:    "cuda" or "cpu"; None: a GPU where there is one
    resume:    go on from the last checkpoint in the folder, if there is one
    overwrite: remove the run that is in the folder
    evaluate:  called where the config has validation data, at every `run.evaluate_every` steps
               and at the end
    line, watch: show how it goes, and how the annotations are read

    Under torchrun, the processes share each batch. Everything random depends on the seed and the
    step: a run that was killed and resumed has the weights of one that was not.
    """
    from lvdet.train.data.annotations import read_dataset
    from lvdet.train.data.loader import Loader

    with joined(device) as process, stopping() as stop:
        if config.schedule.batch % process.world:
            raise InputError(
                f"schedule.batch is {config.schedule.batch}, which {process.world} processes "
                "cannot share equally"
            )
        if not (resume or overwrite):
            require_new(folder)
        annotations = Path(config.data.train)
        with watched(watch if process.first else None, f"reading {annotations.name}") as progress:
            dataset = read_dataset(annotations, Path(config.data.train_images), progress=progress)
        vocabulary = Vocabulary.of(dataset)
        with locked(folder) if process.first else nullcontext():
            checkpoint = last_checkpoint(folder, config, vocabulary) if resume else None
            torch.manual_seed(_seed(config, -1, 0))
            begun = begin_model(config, vocabulary, checkpoint, process)
            optimizer = build_optimizer(begun.detector, config.schedule)
            if checkpoint is not None:
                file = checkpoint / "optimizer.safetensors"
                load_momenta(begun.detector, optimizer, read_tensors(file)[0], file)
            process.wait_for_all()  # all have read what the first may now remove
            log = None
            if process.first:
                if checkpoint is None:
                    clear(folder)
                write_config(folder, config)
                log = Log(folder / LOG, begun.step)
            run = Training(
                config=config,
                folder=folder,
                process=process,
                detector=begun.detector,
                model=parallel(begun.detector, process),
                optimizer=optimizer,
                vocabulary=vocabulary,
                step=begun.step,
                evaluate=evaluate if config.data.val else None,
                log=log,
                line=line if process.first else None,
                stop=stop,
            )
            loader = Loader(
                dataset,
                config,
                start_step=begun.step,
                steps=config.schedule.steps,
                rank=process.rank,
                world=process.world,
            )
            run.run_steps(loader)
    return checkpoints(folder)[-1]


@dataclass
class Training:
    """A run in progress.

    model: the detector, or the detector as several processes train it
    step:  steps done so far
    log, line: of the first process
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
        on_gpu = self.process.device.type == "cuda"
        self.precision = self.config.run.precision or ("bf16" if on_gpu else "fp32")
        if self.precision == "bf16" and not on_gpu:
            raise InputError('run.precision is "bf16", which needs a GPU; set it to "fp32"')
        # What stays in float32, as the last layer does, is multiplied in TF32 on a GPU.
        torch.set_float32_matmul_precision("high")

    def run_steps(self, batches: Iterable[Batch]) -> None:
        """All steps that are left: logs, saves and evaluates when it is time, and at the end."""
        every, steps = self.config.run, self.schedule.steps
        if self._evaluation_is_missing():
            self._evaluate()
        self._train_mode()
        with self._explained():
            source = iter(device_batches(batches, self.process.device, every.channels_last))
            while self.step < steps:
                batch = self._next(source)
                if batch is not None:
                    self._train_step(batch)
                    self.step += 1
                number = self.process.agreed(self.stop.signal)
                end = self.step == steps
                if self.step % (every.log_every or UNLOGGED) == 0 or end:
                    self._record()
                evaluated = self.evaluate is not None and _due(self.step, every.evaluate_every)
                stopped = batch is None or number
                if stopped or end or evaluated or _due(self.step, every.checkpoint_every):
                    self._save()
                if stopped and not end:
                    raise StoppedError(
                        f"stopped after {self.step:,} of {steps:,} steps; --resume goes on from "
                        f"{checkpoints(self.folder)[-1]}",
                        number or self.stop.signal,
                    )
                if end or evaluated:
                    self._evaluate()
        if self.line is not None:
            self.line.end()

    def _next(self, source: Iterator[Batch]) -> Batch | None:
        """The next batch; None where a signal ended the processes that load it."""
        begun = time.monotonic()
        try:
            return next(source)
        except RuntimeError:
            if self.stop.signal and self.process.world == 1 and self.step:
                return None
            raise
        except StopIteration:
            raise LvdetError(f"the data ended before step {self.step + 1:,}") from None
        finally:
            self.losses.waited += time.monotonic() - begun

    def _train_step(self, batch: Batch) -> None:
        torch.manual_seed(_seed(self.config, self.step, self.process.rank))
        set_rate(self.optimizer, rate_at(self.schedule, self.step))
        kind = self.process.device.type
        with torch.autocast(kind, torch.bfloat16, enabled=self.precision == "bf16"):
            losses = self.model(batch)
        total = self.losses.add(losses)
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        if self.schedule.clip:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.schedule.clip)
        self.optimizer.step()

    def _train_mode(self) -> None:
        self.model.train()
        if self.config.retrain.checkpoint:
            fix_statistics(self.model)

    def _record(self) -> None:
        """A line of the log on the steps since the last one."""
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
        """A checkpoint, unless a loss or a weight is not finite."""
        self.losses.fetch(self.step)
        if not self.process.first or self._saved():
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

    def _saved(self) -> bool:
        return any(path.name == f"step-{self.step:09}" for path in checkpoints(self.folder))

    def _evaluation_is_missing(self) -> bool:
        """A run that was killed while it evaluated does so again."""
        due = self.step == self.schedule.steps or _due(self.step, self.config.run.evaluate_every)
        if self.evaluate is None or not due or not self.step:
            return False
        missing = self.log is not None and not self.log.evaluated(self.step)
        return bool(self.process.largest(missing))

    def _evaluate(self) -> None:
        """The first process evaluates, the others wait."""
        if self.evaluate is None:
            return
        if self.line is not None:
            self.line.end()
        if self.log is not None:
            self.detector.eval()
            begun = time.monotonic()
            outcome = self.evaluate(self.detector, self.config, self.folder, self.step)
            seconds = time.monotonic() - begun
            record = {"step": self.step, "time": time.time(), "seconds": seconds}
            self.log.write({**record, "evaluation": outcome})
            self.losses.begun += seconds
            if self.line is not None:
                self.line.say(evaluation_text(self.step, outcome))
        self.process.wait_for_all()
        self._train_mode()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What cannot be gone on with, in one line that says what to do."""
        try:
            yield
        except NotFiniteError as error:
            raise LvdetError(
                f"{error}: training has failed; {self._last_good()}; try a lower schedule.rate, a "
                "longer schedule.warmup_steps, or schedule.clip = 10.0"
            ) from None
        except torch.cuda.OutOfMemoryError:
            raise LvdetError(
                f"the GPU's memory is full in step {self.step + 1:,}, with "
                f"{self.schedule.batch // self.process.world} images a GPU of "
                f"{self.config.input.by} side up to {max(self.config.input.sizes)}: lower "
                "schedule.batch or input.sizes, set run.precision to bf16, or set "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; " + self._saved_after_all()
            ) from None
        finally:
            if self.line is not None:
                self.line.end()

    def _last_good(self) -> str:
        found = checkpoints(self.folder)
        return f"the last good checkpoint is {found[-1]}" if found else "there is no checkpoint yet"

    def _saved_after_all(self) -> str:
        """Keeps the steps that were finished: the one that failed has changed no weight yet."""
        self.optimizer.zero_grad(set_to_none=True)
        try:
            if self.process.world == 1 and self.step:
                self._save()
        except (LvdetError, RuntimeError):
            pass
        return self._last_good()


def watched(watch: Watch | None, title: str) -> AbstractContextManager[Progress | None]:
    """The watcher's context, or one that shows nothing."""
    return nullcontext() if watch is None else watch(title)


def _due(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _seed(config: Config, step: int, rank: int) -> int:
    """What everything random in a step depends on."""
    text = f"{config.run.seed} {step} {rank}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")
