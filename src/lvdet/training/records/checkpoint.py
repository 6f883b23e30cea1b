"""Checkpoints: folders that appear under their names only once they are complete.

RUN/checkpoints/step-000005000/model.safetensors      weights; config and classes as texts
                               optimizer.safetensors  momenta
                               state.json             the step, and what it was trained with
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import lvdet
from lvdet.errors import InputError, OutputError
from lvdet.files.writing import make_folder, write_text
from lvdet.operating_system import sync_folder
from lvdet.training.configuration.config import Config
from lvdet.training.configuration.config_file import resolved
from lvdet.training.records.tensor_file import read_metadata, read_tensors, write_tensors
from lvdet.training.records.vocabulary import Vocabulary

if TYPE_CHECKING:
    from lvdet.training.model.detector import Detector

_MODEL, _OPTIMIZER, _STATE = "model.safetensors", "optimizer.safetensors", "state.json"
_FILES = (_MODEL, _OPTIMIZER, _STATE)
_NAME = re.compile(r"step-(\d{9,})")


@dataclass(frozen=True)
class Described:
    """The metadata of a checkpoint.

    fixed: names of the parameters that were not trained
    """

    config: Config
    vocabulary: Vocabulary
    step: int
    fixed: tuple[str, ...]


@dataclass(frozen=True)
class LoadedModel:
    """A trained detector, ready to predict."""

    detector: Detector
    config: Config
    vocabulary: Vocabulary
    step: int

    @property
    def category_ids(self) -> NDArray[np.int64]:
        """[K] the ids of the classes in the training annotations."""
        return self.vocabulary.ids

    @property
    def category_names(self) -> list[str]:
        return self.vocabulary.names


def checkpoints(run: Path) -> list[Path]:
    """The complete checkpoints in a run folder, the newest last."""
    found = []
    for path in (run / "checkpoints").glob("step-*"):
        match = _NAME.fullmatch(path.name)
        if match and all((path / name).is_file() for name in _FILES):
            found.append((int(match[1]), path))
    return [path for _, path in sorted(found)]


def checkpoint_after(run: Path, step: int) -> Path:
    """The path of the checkpoint after a step."""
    return run / "checkpoints" / f"step-{step:09}"


def save_checkpoint(
    run: Path,
    model: nn.Module,
    momenta: Mapping[str, Tensor],
    described: Described,
    state: Mapping[str, Any],
    keep: int,
) -> Path:
    """Writes a checkpoint, and removes older ones except the newest `keep`."""
    folder = run / "checkpoints"
    make_folder(folder)
    target = checkpoint_after(run, described.step)
    temporary = folder / f".{target.name}.part"
    try:
        for old in folder.glob(".step-*.part"):  # left by a killed write
            shutil.rmtree(old)
        make_folder(temporary)
        texts = {
            "lvdet": lvdet.__version__,
            "step": str(described.step),
            "config": json.dumps(asdict(described.config)),
            "fixed": json.dumps(described.fixed),
            **described.vocabulary.to_texts(),
        }
        write_tensors(temporary / _MODEL, model.state_dict(), texts)
        write_tensors(temporary / _OPTIMIZER, momenta, {"step": str(described.step)})
        write_text(
            json.dumps({"step": described.step, **state}, indent=2) + "\n", temporary / _STATE
        )
        if target.exists():
            shutil.rmtree(target)
        os.replace(temporary, target)
        sync_folder(folder)
        for old in checkpoints(run)[:-keep]:
            shutil.rmtree(old)
    except OSError as error:
        raise OutputError(f"{target}: cannot write: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            shutil.rmtree(temporary, ignore_errors=True)
    return target


def find_checkpoint(path: Path) -> Path:
    """The model file of a run folder's last checkpoint, of a checkpoint, or the file itself."""
    if path.is_file():
        return path
    if (path / _MODEL).is_file():
        return path / _MODEL
    if not path.exists():
        raise InputError(f"{path}: no such checkpoint")
    found = checkpoints(path)
    if not found:
        raise InputError(
            f"{path}: no checkpoint found, expected a run folder, one of its checkpoints or a "
            f"{_MODEL}"
        )
    return found[-1] / _MODEL


def describe(file: Path) -> Described:
    """The metadata of a model file."""
    return _described(read_metadata(file), file)


def _described(texts: dict[str, str], file: Path) -> Described:
    vocabulary = Vocabulary.from_texts(texts, file)
    try:
        values, step = json.loads(texts["config"]), int(texts["step"])
        fixed = tuple(map(str, json.loads(texts["fixed"])))
    except (KeyError, TypeError, ValueError):
        raise InputError(f"{file}: not an lvdet detector: its config is missing") from None
    if not isinstance(values, dict):
        raise InputError(f"{file}: not an lvdet detector: its config is damaged")
    return Described(resolved(values, (), f"{file} (config)", None), vocabulary, step, fixed)


def load_model(path: Path, device: torch.device) -> LoadedModel:
    """Loads a detector in eval mode from a checkpoint folder, a model file, or a run folder."""
    from lvdet.training.model.build import build_detector

    file = find_checkpoint(path)
    tensors, texts = read_tensors(file)
    described = _described(texts, file)
    detector = build_detector(described.config, described.vocabulary.frequencies, pretrained=False)
    put_weights(detector, tensors, file)
    detector.to(device).eval()
    return LoadedModel(detector, described.config, described.vocabulary, described.step)


def put_weights(model: nn.Module, tensors: Mapping[str, Tensor], where: object) -> None:
    """Loads all weights of a model; raises with one line if some do not fit."""
    expected = model.state_dict()
    for name, tensor in expected.items():
        if name not in tensors:
            raise InputError(f"{where}: lacks {name}, which the configured detector has")
        if tensors[name].shape != tensor.shape:
            raise InputError(
                f"{where}: {name} has shape {list(tensors[name].shape)}, but the configured "
                f"detector has {list(tensor.shape)}"
            )
    for name in tensors:
        if name not in expected:
            raise InputError(f"{where}: has {name}, which the configured detector lacks")
    model.load_state_dict(dict(tensors))


def require_same_network(found: Config, wanted: Config, where: object) -> None:
    """Raises for weights of another network, naming the first key of [model] that differs."""
    for key in ("kind", "backbone", "norm", "stride_in", "anchors", "masks"):
        theirs, mine = (_network(config)[key] for config in (found, wanted))
        if theirs != mine:
            raise InputError(
                f"{where}: model.{key} is {theirs!r} there, but {mine!r} in the config"
            )


def _network(config: Config) -> dict[str, Any]:
    stride_in = config.model.stride_in or "3x3"
    return asdict(replace(config.model, norm=config.model.chosen_norm, stride_in=stride_in))
