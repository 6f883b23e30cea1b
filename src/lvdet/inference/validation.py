"""Evaluates a detector during training."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lvdet.errors import InputError
from lvdet.files.progress import Progress
from lvdet.files.writing import make_folder
from lvdet.inference.image_list import ImageList, annotated_images
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.inference.work_folder import OtherSettingsError
from lvdet.training.configuration.config import Config
from lvdet.training.loop.processes import Process
from lvdet.training.model.classifier import Frequencies
from lvdet.training.records.checkpoint import LoadedModel, checkpoints, describe
from lvdet.training.records.vocabulary import Vocabulary

if TYPE_CHECKING:
    from lvdet.training.model.detector import Detector

#: The metrics of an evaluation that go to a run's log.
METRICS = ("AP", "AP50", "AP75", "APr", "APc", "APf")


def evaluate(
    detector: Detector,
    config: Config,
    folder: Path,
    step: int,
    process: Process,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """AP-Old, AP-Fixed and AP-Pool on data.val, for the log: {"old": {"AP": …, "APr": …}, …}, with
    None for undefined ones, and the evaluation's "warnings".

    folder:  the run's folder; predictions/step-000000123.json keeps the detections: the best 300 of
             each image and the best 10,000 of each class
    process: this process, if several train together; they share the images, the first evaluates
             the detections, and the others return nothing
    """
    annotations = Path(config.data.val)
    listed = annotated_images(annotations, Path(config.data.val_images))
    model = LoadedModel(detector, config, _vocabulary(detector, folder, listed), step)
    listed.require_classes_of(model.category_ids.tolist(), model.category_names)
    out = folder / "predictions" / f"step-{step:09}.json"
    make_folder(out.parent)
    settings = Settings(overwrite=True, workers=config.run.workers)
    try:
        predict(model, listed.images, out, settings, progress, process)
    except Exception as error:
        leftovers = isinstance(error, OtherSettingsError)  # from an earlier run in this folder
        if not process.largest(leftovers):
            raise
        if leftovers:
            shutil.rmtree(out.with_name(out.name + ".work"))
        predict(model, listed.images, out, settings, progress, process)
    if not process.first:
        return {}
    import lvdet

    result = lvdet.evaluate(annotations, out)
    metrics: dict[str, Any] = {
        name: {metric: _number(found[metric]) for metric in METRICS if metric in found}
        for name, found in result.items()
    }
    return metrics | {"warnings": result.warnings}


def _vocabulary(detector: Detector, folder: Path, listed: ImageList) -> Vocabulary:
    """The trained classes, from a checkpoint of the run; before the first checkpoint, the classes
    of the annotations, if their number matches."""
    found = checkpoints(folder)
    if found:
        return describe(found[-1] / "model.safetensors").vocabulary
    ids = sorted(listed.categories)
    if len(ids) != detector.classes:
        raise InputError(
            f"{listed.source}: has {len(ids):,} categories, but the detector has "
            f"{detector.classes:,}"
        )
    none = np.zeros(len(ids), dtype=np.int64)
    return Vocabulary(
        np.array(ids, dtype=np.int64),
        [listed.categories[number] for number in ids],
        None,
        Frequencies(0, none, none),
    )


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
