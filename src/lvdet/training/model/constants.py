"""Small tables of numbers on the device, copied there once: a copy from the host is a wait."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor


@lru_cache(maxsize=1024)
def on_device(values: tuple[Any, ...], device: torch.device) -> Tensor:
    """The tensor of a tuple of numbers, or of tuples of them; not to be changed."""
    return torch.tensor(values, device=device)
