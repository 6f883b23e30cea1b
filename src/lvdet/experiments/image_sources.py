"""The images of a scale: made if missing, or as named by configs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from lvdet.errors import InputError
from lvdet.experiments.scale import Scale
from lvdet.files.progress import Progress
from lvdet.images.image_set import make_image_set
from lvdet.threads import thread_count
from lvdet.training.configuration.config import Config, Data


def make_sets(
    scale: Scale, wanted: Iterable[str], folder: Path, progress: Progress | None = None
) -> None:
    """Draws the sets that are not yet in the folder."""
    for name in dict.fromkeys(wanted):
        target = _place(scale, name, folder)
        if target is not None and not (target / "annotations" / "val.json").is_file():
            make_image_set(
                target,
                scale.sets[name],
                workers=thread_count(),
                overwrite=True,
                progress=progress,
            )


def data_of(scale: Scale, name: str, config: Config, folder: Path) -> Data:
    """The files of a set: those that were drawn, or those of the config, which must exist."""
    target = _place(scale, name, folder)
    if target is not None:
        target = target.absolute()
        return Data(
            str(target / "annotations" / "train.json"),
            str(target / "train"),
            str(target / "annotations" / "val.json"),
            str(target / "val"),
        )
    data = config.data
    for path in (data.train, data.train_images, data.val, data.val_images):
        if not Path(path).exists():
            raise InputError(
                f"{path}: not found, but scale {scale.name} needs it; --scale synth makes its own "
                "images"
            )
    return data


def _place(scale: Scale, name: str, folder: Path) -> Path | None:
    """The folder that a set is drawn in, from its settings; None if the scale draws none."""
    if name not in scale.sets:
        return None
    settings = json.dumps(scale.sets[name].to_dict(), sort_keys=True)
    return folder / f"{scale.name}-{name}-{sha256(settings.encode()).hexdigest()[:8]}"
