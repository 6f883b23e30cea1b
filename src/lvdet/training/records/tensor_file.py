"""Named tensors and texts in a safetensors file. Reading a file does not execute code."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from lvdet.errors import InputError
from lvdet.files.writing import write_whole
from lvdet.operating_system import set_mode


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes the file atomically."""
    dense = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    with write_whole(path) as file:
        save_file(dense, file.name, dict(metadata) if metadata else None)
        # The package may have put a file of its own in the place of the temporary one.
        with open(file.name, "rb+") as written:
            set_mode(written, stat.S_IMODE(os.fstat(file.fileno()).st_mode))
            os.fsync(written.fileno())


def read_metadata(path: Path) -> dict[str, str]:
    """Reads the texts of a file."""
    with _opened(path) as file:
        return file.metadata() or {}


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a file by name, on the CPU, and its texts."""
    with _opened(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


def _opened(path: Path) -> Any:
    try:
        return safe_open(path, "pt")
    except SafetensorError as error:
        text = " ".join(str(error).split())  # it may quote lines of the file
        raise InputError(f"{path}: not a safetensors file, or truncated ({text})") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
