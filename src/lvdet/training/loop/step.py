"""One training step: from a batch to updated weights."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from lvdet.errors import InputError
from lvdet.training.data.batch import Batch
from lvdet.training.loop.processes import mean_over_processes
from lvdet.training.model.detector import Counts, Detector


def step_seed(seed: int, step: int) -> int:
    """The seed of everything random in a step, the same in all processes; random numbers that must
    differ between images use the images' seeds. Step -1 stands for the initial weights."""
    text = f"{seed} {step} 0".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")


def precision_on(device: torch.device, requested: str) -> str:
    """The precision: as requested, or by default bf16 on a GPU that supports it, otherwise fp32."""
    if device.type != "cuda":
        if requested == "bf16":
            raise InputError('run.precision is "bf16", which needs a GPU; set it to "fp32"')
        return "fp32"
    native = torch.cuda.is_bf16_supported(including_emulation=False)
    return requested or ("bf16" if native else "fp32")


def losses_of(
    model: nn.Module, batch: Batch, precision: str, counts: Counts | None = None
) -> dict[str, Tensor]:
    """The losses of a batch by name."""
    with arithmetic(batch, precision):
        losses: dict[str, Tensor] = model(batch) if counts is None else model(batch, counts)
    return losses


def differentiate(
    model: nn.Module, detector: Detector, batch: Batch, precision: str, number: int
) -> dict[str, Tensor]:
    """Accumulates the gradients of a batch's losses, part by part; returns the losses, detached.

    model: the detector, or its wrapper for several processes

    The losses of every part are divided by the counts of the whole batch, so that losses and
    gradients equal the whole batch's up to rounding. With several parts, the counts are not known
    in time, so the backbone and the proposals process each part once beforehand, without gradients.
    """
    parts = batch.parts(number) if number > 1 else [batch]
    counts = _counted(detector, parts, precision) if number > 1 else None
    rows, names = [], tuple[str, ...]()
    for place, part in enumerate(parts):
        last = place + 1 == number
        alone = not last and isinstance(model, DistributedDataParallel)
        with model.no_sync() if alone else nullcontext():  # type: ignore[operator]
            losses = losses_of(model, part, precision, counts)
            names = tuple(losses)
            row = torch.stack([loss.float() for loss in losses.values()])
            total = row.sum() if number == 1 else row.sum() / number
            total.backward()  # type: ignore[no-untyped-call]
        rows.append(row.detach())
    means = torch.stack(rows).mean(dim=0) if number > 1 else rows[0]
    return dict(zip(names, means, strict=True))


def _counted(detector: Detector, parts: list[Batch], precision: str) -> Counts:
    """The counts of all parts and processes, as means over both."""
    norms = [module for module in detector.modules() if isinstance(module, _BatchNorm)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:  # so that these images do not count twice
        norm.momentum = 0.0
    with arithmetic(parts[0], precision):
        each = [torch.stack(detector.counted(part)) for part in parts]
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.momentum = momentum
    total = mean_over_processes(torch.stack(each).sum(dim=0).float()).clamp(min=1)
    return Counts(*(total / len(parts)))


def arithmetic(batch: Batch, precision: str) -> torch.autocast:
    """The autocast context of a batch: bf16 if that is the precision."""
    kind = batch.pixels.device.type
    return torch.autocast(kind, torch.bfloat16, enabled=precision == "bf16")


def descend(model: nn.Module, optimizer: torch.optim.Optimizer, rate: float, clip: float) -> None:
    """Updates the weights with their gradients, clipped to the norm `clip` (0: no clipping), and
    clears the gradients."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
