"""A description of the machine that a detector runs on."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch
from torch import nn


def hardware(detector: nn.Module) -> dict[str, Any]:
    """The device of a detector, and the versions of the software on it."""
    device = next(detector.parameters()).device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    return {
        "device": name,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cores": os.cpu_count(),
    }


def _processor() -> str:
    """The processor's name, if the system provides it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"CPU, {names[0]}" if names else f"CPU, {platform.machine()}"
