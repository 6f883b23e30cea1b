"""The folder of a run.

config.toml     the whole config, with absolute paths
log.jsonl       losses and evaluations
tensorboard/    the same for TensorBoard, if requested
checkpoints/    see `lvdet.training.records.checkpoint`
predictions/    step-000005000.json of each of the last evaluations
.lock           of the process that trains here
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path

from lvdet.errors import InputError, OutputError
from lvdet.files.locking import make_and_lock
from lvdet.files.writing import write_text
from lvdet.training.configuration.config import Config
from lvdet.training.configuration.config_file import config_text, flat_values
from lvdet.training.loop.schedule import resolved_schedule
from lvdet.training.records.checkpoint import checkpoints, describe
from lvdet.training.records.scalars import EVENTS
from lvdet.training.records.vocabulary import Vocabulary

CONFIG, LOG, _LOCK = "config.toml", "log.jsonl", ".lock"
_STEP = re.compile(r"step-(\d{9,})\.")

_PREDICTIONS = "predictions"

#: Keys that may change when a run resumes: the weights after a step do not depend on them.
#: Of the data it is the counts that are compared: the files may have been moved. What a run began
#: with is in its checkpoints.
FREE = frozenset(
    {
        "data.train",
        "data.train_images",
        "data.val",
        "data.val_images",
        "model.weights",
        "retrain.checkpoint",
        "schedule.steps",
        "schedule.accumulate",
        "run.workers",
        "run.log_every",
        "run.tensorboard",
        "run.checkpoint_every",
        "run.evaluate_every",
        "run.keep",
    }
)


def config_hash(config: Config) -> str:
    """A hash of the keys that affect the weights."""
    values = {key: value for key, value in flat_values(config).items() if key not in FREE}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Resumed:
    """The checkpoint to resume from, and the config with the settings that the run started with."""

    checkpoint: Path
    config: Config


def resumed(folder: Path, config: Config, vocabulary: Vocabulary) -> Resumed | None:
    """How to resume the run in a folder, checked against config and data; None if there is no
    checkpoint yet."""
    found = checkpoints(folder)
    if not found:
        return None
    described = describe(found[-1] / "model.safetensors")
    config = replace(
        config,
        model=replace(
            config.model,
            weights=described.config.model.weights,
            stride_in=config.model.stride_in or described.config.model.stride_in,
        ),
        retrain=described.config.retrain,
    )
    theirs, mine = flat_values(described.config), flat_values(config)
    for key, value in mine.items():
        if key not in FREE and theirs[key] != value:
            raise InputError(
                f"{folder}: started with {key} {theirs[key]!r}, now {value!r}; use the same value "
                "to resume, or start another run with -o"
            )
    described.vocabulary.require_same_data(vocabulary, found[-1])
    if described.step > config.schedule.steps:
        raise InputError(
            f"{folder}: already trained for {described.step:,} steps, but schedule.steps is "
            f"{config.schedule.steps:,}"
        )
    was, now = (resolved_schedule(c).warmup_steps for c in (described.config, config))
    if was != now and described.step < max(was, now):
        raise InputError(
            f"{folder}: still in its warm-up, which lasts {was:,} of "
            f"{described.config.schedule.steps:,} steps, and would last {now:,} of "
            f"{config.schedule.steps:,}; change schedule.steps after the warm-up"
        )
    return Resumed(found[-1], config)


def require_new(folder: Path) -> None:
    """Raises for a folder that is not empty."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: not a folder")
    if folder.is_dir() and any(path.name != _LOCK for path in folder.iterdir()):
        raise InputError(
            f"{folder}: not empty; pass --resume to resume its run, --overwrite to remove it"
        )


def require_own(folder: Path) -> None:
    """Raises for a folder with files that do not belong to a run, because starting one would remove
    some of them."""
    try:
        require_new(folder)
    except InputError:
        if folder.is_dir() and ((folder / _LOCK).exists() or checkpoints(folder)):
            return
        raise InputError(
            f"{folder}: has files, but no run to resume or remove; pass another folder with -o"
        ) from None


def clear(folder: Path) -> None:
    """Removes a run, and nothing else in the folder."""
    try:
        for name in (CONFIG, LOG):
            (folder / name).unlink(missing_ok=True)
        for name in ("checkpoints", EVENTS):
            if (folder / name).exists():
                shutil.rmtree(folder / name)
    except OSError as error:
        raise OutputError(f"{folder}: cannot remove: {error.strerror}") from None
    remove_predictions(folder, 0)


def remove_predictions(folder: Path, keep: int) -> None:
    """Removes the predictions of a run's evaluations except the newest `keep`, with everything
    written beside them."""
    found: dict[int, list[Path]] = {}
    for path in (folder / _PREDICTIONS).glob("step-*"):
        if match := _STEP.match(path.name):
            found.setdefault(int(match[1]), []).append(path)
    try:
        for step in sorted(found, reverse=True)[keep:]:
            for path in found[step]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        if not keep and found and not any((folder / _PREDICTIONS).iterdir()):
            (folder / _PREDICTIONS).rmdir()
    except OSError as error:
        raise OutputError(f"{folder / _PREDICTIONS}: cannot remove: {error}") from None


def write_config(folder: Path, config: Config) -> None:
    """Writes the resolved config, which reads back unchanged."""
    write_text(config_text(config), folder / CONFIG)


def locked(folder: Path) -> FileIO:
    """Keeps other runs from writing here while the context is open."""
    return make_and_lock(folder, _LOCK, "training")
