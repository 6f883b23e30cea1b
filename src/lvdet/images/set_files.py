"""The files of an image set other than its pictures: annotations, settings, and a training
config."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lvdet.errors import InputError, OutputError
from lvdet.files.writing import make_folder, write_text, write_whole

PARTS = ("train", "val")
#: Written first, removed last: says that the folder is a set, finished or not.
MARK = "synth.json"


def claim_folder(folder: Path, settings: Mapping[str, Any], *, overwrite: bool) -> None:
    """Makes the folder for a set, or clears that of an earlier set if allowed."""
    try:
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder}: is a file, expected a folder")
        filled = folder.is_dir() and any(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from None
    if filled:
        if not (folder / MARK).is_file():
            raise InputError(f"{folder}: contains other files; pass a new or empty folder")
        if not overwrite:
            raise InputError(
                f"{folder}: already contains an image set; pass another folder, or --overwrite"
            )
        _clear(folder)
    for part in (*PARTS, "annotations"):
        make_folder(folder / part)
    write_text(json.dumps(settings, indent=2) + "\n", folder / MARK)


def _clear(folder: Path) -> None:
    """Removes the files of a set, and nothing else."""
    files = [folder / "annotations" / f"{part}.json" for part in PARTS]
    files.append(folder / "config.toml")
    for part in PARTS:
        if (folder / part).is_dir():
            files.extend(
                path
                for path in (folder / part).iterdir()
                if re.fullmatch(r"\d{12}\.jpg", path.name) and not path.is_dir()
            )
    try:
        for path in files:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot remove: {error.strerror or error}") from None


def write_annotations(
    path: Path,
    images: Iterable[str],
    annotations: Iterable[str],
    categories: Sequence[Mapping[str, Any]],
) -> None:
    """Writes an LVIS file from records that are already JSON."""
    with write_whole(path) as file:
        file.write(b'{"info": {"description": "made by lvdet synth", "version": "v1"},\n')
        file.write(b'"licenses": [],\n')
        for name, records in (
            ("images", images),
            ("annotations", annotations),
            ("categories", map(json.dumps, categories)),
        ):
            file.write(f'"{name}": [\n'.encode())
            between = ""
            for record in records:
                file.write((between + record).encode())
                between = ",\n"
            file.write(b"]}\n" if name == "categories" else b"],\n")


def write_config(path: Path, images: int, size: int) -> None:
    """Writes a config for `lvdet train`: a small detector, a dozen epochs."""
    steps = max(100, round(12 * images / 16 / 10) * 10)
    anchors = [max(size // 20, 8) << level for level in range(5)]
    write_text(
        f"""\
# lvdet train {path}
# A small Mask R-CNN from scratch, {steps:,} steps of 16 images of {size} pixels.

[data]
train = "annotations/train.json"
train_images = "train"
val = "annotations/val.json"
val_images = "val"

[input]
by = "longest"
sizes = [{size}]

[model]
backbone = "resnet18"
weights = "none"
anchors = {anchors}

[classifier]
loss = "softmax"

[sampler]
name = "repeat_factor"

[schedule]
steps = {steps}
batch = 16
rate = 0.02
milestones = [{steps * 2 // 3}, {steps * 8 // 9}]
warmup_steps = {min(1000, steps // 10)}

[run]
checkpoint_every = {max(50, steps // 5)}
""",
        path,
    )
