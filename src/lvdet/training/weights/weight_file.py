"""A weight file as named tensors, whichever project wrote it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lvdet.errors import InputError
from lvdet.training.weights.array_pickle import read_array_pickle

#: Endings of files of other projects; lvdet's own are folders and .safetensors.
ENDINGS = (".pkl", ".pth", ".pt", ".pyth")
#: Under which keys state dicts are found: Detectron2's and Caffe2's, pycls's, and others'.
_INNER = ("model", "blobs", "model_state", "state_dict")


@dataclass(frozen=True)
class WeightFile:
    """Tensors by name, on the CPU, and the author that a file states ("" if none)."""

    path: Path
    tensors: Mapping[str, Tensor]
    author: str = ""

    def begins_digest(self, *beginnings: str) -> bool:
        """Whether the SHA-256 of the file's bytes begins with one of these."""
        with self.path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        return found.startswith(beginnings)


def is_weight_file(path: Path) -> bool:
    """Whether a file has the extension of another project's weights."""
    return path.suffix.lower() in ENDINGS and not path.is_dir()


def read_weight_file(path: Path) -> WeightFile:
    """Reads .pkl files with arrays and plain containers, and what `torch.save` writes, without
    executing code from the file."""
    content = read_array_pickle(path) if path.suffix.lower() == ".pkl" else _loaded(path)
    author = content.get("__author__", "")
    for key in _INNER:
        if isinstance(content.get(key), Mapping):
            content = content[key]
            break
    tensors = {
        str(name).removeprefix("module."): value if isinstance(value, Tensor) else _tensor(value)
        for name, value in content.items()
        if isinstance(value, Tensor | np.ndarray) and not str(name).endswith("_momentum")
    }
    if not tensors:
        raise InputError(f"{path}: not the weights of a network: it has no named arrays")
    return WeightFile(path, tensors, author if isinstance(author, str) else "")


def _loaded(path: Path) -> Mapping[str, Any]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{path}: not the weights of a network: {text}") from None
    if not isinstance(content, Mapping):
        raise InputError(
            f"{path}: not the weights of a network: {type(content).__name__}, expected a dict"
        )
    return content


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    """A copy in this machine's byte order, as a PyTorch type."""
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:
        array = array.astype(np.int64)
    return torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))
