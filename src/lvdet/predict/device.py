"""Where to predict."""

from __future__ import annotations

import torch

from lvdet.errors import InputError


def device_of(name: str | None) -> torch.device:
    """The device of a name such as "cuda:1"; without one, a GPU where there is one."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    try:
        device = torch.device(name or ("cuda" if gpus else "cpu"))
    except RuntimeError:
        raise InputError(f"--device is {name!r}, expected cuda, cuda:1, cpu or the like") from None
    if device.type == "cuda" and not gpus:
        raise InputError("--device is a GPU, but PyTorch finds none on this machine")
    if device.type == "cuda" and (device.index or 0) >= gpus:
        raise InputError(f"--device is {name!r}, but there are {gpus} GPUs")
    return device
