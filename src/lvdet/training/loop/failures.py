"""Errors that end a run, in one line with advice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from lvdet.errors import InputError, LvdetError
from lvdet.training.loop.step_losses import NotFiniteError

if TYPE_CHECKING:
    from lvdet.training.loop.loop import Training


@contextmanager
def explained(run: Training) -> Iterator[None]:
    """Adds advice to errors about non-finite weights and exhausted memory."""
    try:
        yield
    except NotFiniteError as error:
        raise LvdetError(
            f"{error}: training diverged; {run.last_good()}; try a lower schedule.rate, more "
            "schedule.warmup_steps, or schedule.clip = 10.0"
        ) from None
    except torch.cuda.OutOfMemoryError:
        run.optimizer.zero_grad(set_to_none=True)
        # Other processes wait in the middle of the step, and cannot save with this one.
        kept = run.keep_finished() if run.process.world == 1 else run.last_good()
        raise LvdetError(
            f"out of GPU memory in step {run.step + 1:,}, with "
            f"{run.schedule.batch // run.process.world // run.schedule.accumulate} images at a "
            f"time per GPU of {run.config.input.by} side up to {max(run.config.input.sizes)}: "
            "raise schedule.accumulate, lower input.sizes, set run.precision to bf16, or set "
            f"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; {kept}"
        ) from None


def loading_failed(failure: Exception | None, kept: str) -> LvdetError:
    """The error to raise if a batch cannot be loaded; without a failure of its own, reports another
    process's.

    kept: which checkpoint there is
    """
    if failure is None:
        return LvdetError(f"another process could not load its images; {kept}")
    text = "not enough memory" if isinstance(failure, MemoryError) else str(failure)
    kind = InputError if isinstance(failure, InputError) else LvdetError
    return kind(f"{' '.join(text.split())}; {kept}")
