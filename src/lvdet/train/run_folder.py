"""The folder of a run: begun anew, gone on with, or refused.

config.toml     the whole config, with absolute paths
log.jsonl       losses and evaluations
checkpoints/    see `lvdet.train.checkpoint`
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lvdet.errors import InputError, OutputError
from lvdet.read.files import make_folder, write_text
from lvdet.train.checkpoint import Described, checkpoints, describe
from lvdet.train.config import Config
from lvdet.train.config_file import config_text, flat_values
from lvdet.train.vocabulary import Vocabulary

CONFIG, LOG, _LOCK = "config.toml", "log.jsonl", ".lock"

#: Keys that a run may be gone on with changed: the weights after a step do not depend on them.
#: Of the data it is the counts that are compared: the files may have been moved.
FREE = frozenset(
    {
        "data.train",
        "data.train_images",
        "data.val",
        "data.val_images",
        "schedule.steps",
        "run.workers",
        "run.log_every",
        "run.checkpoint_every",
        "run.evaluate_every",
        "run.keep",
    }
)


def config_hash(config: Config) -> str:
    """Of the keys that matter to the weights."""
    values = {key: value for key, value in flat_values(config).items() if key not in FREE}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def last_checkpoint(folder: Path, config: Config, vocabulary: Vocabulary) -> Path | None:
    """The checkpoint to go on from, if it is of the same config and data."""
    found = checkpoints(folder)
    if not found:
        return None
    told: Described = describe(found[-1] / "model.safetensors")
    theirs, mine = flat_values(told.config), flat_values(config)
    for key, value in mine.items():
        if key not in FREE and theirs[key] != value:
            raise InputError(
                f"{folder}: was begun with {key} {theirs[key]!r}, which is now {value!r}; go on as "
                "it was begun, or begin another run with --out"
            )
    told.vocabulary.require_same_data(vocabulary, found[-1])
    if told.step > config.schedule.steps:
        raise InputError(
            f"{folder}: has been trained for {told.step:,} steps, schedule.steps is "
            f"{config.schedule.steps:,}"
        )
    return found[-1]


def require_new(folder: Path) -> None:
    """Refuses a folder with something in it."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is not a folder")
    if folder.is_dir() and any(path.name != _LOCK for path in folder.iterdir()):
        raise InputError(
            f"{folder}: is not empty; --resume goes on with the run in it, --overwrite removes it"
        )


def clear(folder: Path) -> None:
    """Removes a run, and nothing else that is there."""
    try:
        for name in (CONFIG, LOG):
            (folder / name).unlink(missing_ok=True)
        if (folder / "checkpoints").exists():
            shutil.rmtree(folder / "checkpoints")
    except OSError as error:
        raise OutputError(f"{folder}: cannot be removed: {error.strerror}") from None


def write_config(folder: Path, config: Config) -> None:
    """The resolved config, which reads back as it is."""
    write_text(config_text(config), folder / CONFIG)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """No other run writes here meanwhile."""
    make_folder(folder)
    try:
        file = open(folder / _LOCK, "ab")  # noqa: SIM115
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another process is training here") from None
        except OSError:
            pass  # a file system without locks
        yield
