"""One step of training: from a batch to changed weights."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor, nn

from lvdet.errors import InputError
from lvdet.training.data.batch import Batch


def step_seed(seed: int, step: int) -> int:
    """What everything random in a step depends on, the same in all processes: what has to differ
    between images depends on theirs. Step -1 is that of the first weights."""
    text = f"{seed} {step} 0".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "little")


def precision_on(device: torch.device, asked: str) -> str:
    """Of the arithmetic: what was asked for, or bf16 on a GPU that has it, fp32 elsewhere."""
    if device.type != "cuda":
        if asked == "bf16":
            raise InputError('run.precision is "bf16", which needs a GPU; set it to "fp32"')
        return "fp32"
    native = torch.cuda.is_bf16_supported(including_emulation=False)
    return asked or ("bf16" if native else "fp32")


def losses_of(model: nn.Module, batch: Batch, precision: str) -> dict[str, Tensor]:
    """The losses of a batch by name."""
    kind = batch.pixels.device.type
    with torch.autocast(kind, torch.bfloat16, enabled=precision == "bf16"):
        losses: dict[str, Tensor] = model(batch)
    return losses


def descend(
    model: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor, rate: float, clip: float
) -> None:
    """Changes the weights by the gradient of a loss, whose norm is at most `clip`; 0: any."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    if clip:
        nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
