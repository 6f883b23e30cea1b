"""One run: trained, predicted, measured, and summarised in a dictionary."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lvdet import __version__
from lvdet.experiments.conditions import CALIBRATION, LIMITS, NMS, part_of
from lvdet.experiments.image_sources import data_of
from lvdet.experiments.measuring import Predicted, measure
from lvdet.experiments.run_graph import Run
from lvdet.experiments.scale import Scale
from lvdet.experiments.source_commit import source_commit
from lvdet.files.fingerprint import fingerprints
from lvdet.files.writing import write_text
from lvdet.inference.device import device_of
from lvdet.inference.image_list import annotated_images
from lvdet.inference.machine import hardware
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.training.configuration.config import Config, Data, Retrain
from lvdet.training.configuration.config_file import flat_values
from lvdet.training.records.checkpoint import LoadedModel, checkpoint_after, checkpoints, load_model
from lvdet.training.train import train

#: The paper's threshold of suppression, and the others that it tries.
NMS_FIRST, NMS_OTHERS = 0.5, (0.1, 0.3, 0.7, 0.9)


@dataclass(frozen=True)
class Workshop:
    """Where and how runs are carried out.

    folder:  images, checkpoints and detections
    workers: processes that load images
    """

    folder: Path
    device: str | None = None
    workers: int = -1

    @property
    def images(self) -> Path:
        """The folder that sets are drawn in."""
        return self.folder / "images"

    def run_folder(self, run: Run) -> Path:
        """The run's folder, as `lvdet train` leaves it."""
        return self.folder / "runs" / run.key


def trained(run: Run, scale: Scale, workshop: Workshop) -> tuple[Config, float]:
    """Trains a run unless it is already trained, resuming unfinished training; returns the config
    and the training time in seconds, including time before interruptions."""
    started, folder = time.monotonic(), workshop.run_folder(run)
    clock = folder.with_name(f"{folder.name}.seconds")
    before = float(clock.read_text(encoding="utf-8")) if clock.is_file() else 0.0
    config = _placed(run, scale, workshop)
    if checkpoint_after(folder, config.schedule.steps) not in checkpoints(folder):
        try:
            train(config, folder, device=workshop.device, resume=True)
        finally:
            before += time.monotonic() - started
            write_text(f"{before:.1f}\n", clock)
    return config, before


def conduct(
    run: Run,
    scale: Scale,
    names: Sequence[str],
    parts: Sequence[str],
    conditions: Iterable[str],
    workshop: Workshop,
) -> dict[str, Any]:
    """Carries out a run and returns everything recorded about it; detections are removed."""
    config, training = trained(run, scale, workshop)
    started = time.monotonic()
    folder = workshop.run_folder(run)
    data = data_of(scale, run.set, run.config, workshop.images)
    model = load_model(folder, device_of(workshop.device))
    wanted = [*conditions]
    settings = _settings(scale, parts, wanted, workshop, model)
    val, train_file = folder / "val.parquet", folder / "train.parquet"
    _predict(model, Path(data.val), Path(data.val_images), val, settings)
    if CALIBRATION in parts:
        own = _settings(scale, (), (), workshop, model)
        _predict(model, Path(data.train), Path(data.train_images), train_file, own)
    predicting = time.monotonic() - started
    started = time.monotonic()
    found = measure(
        Predicted(
            Path(data.val),
            dict(zip(settings.nms, settings.targets(val), strict=True)),
            Path(data.train),
            train_file if CALIBRATION in parts else None,
        ),
        scale,
        parts,
        wanted,
    )
    for path in (*settings.targets(val), train_file):
        path.unlink(missing_ok=True)
    seconds = {
        "training": round(training, 1),
        "predicting": round(predicting, 1),
        "measuring": round(time.monotonic() - started, 1),
    }
    return {
        "key": run.key,
        "names": [*names],
        "seed": run.seed,
        "scale": scale.name,
        "set": run.set,
        "retrained": run.parent is not None,
        "parts": [*parts],
        **found,
        "provenance": {
            "lvdet": __version__,
            "commit": source_commit(),
            **hardware(model.detector),
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": seconds,
            "config": _without_paths(config),
            "data": [one["hash"] for one in fingerprints([data.train, data.val])],
        },
    }


def _placed(run: Run, scale: Scale, workshop: Workshop) -> Config:
    """The config with this machine's paths; nothing is evaluated during training."""
    data = data_of(scale, run.set, run.config, workshop.images)
    config = replace(run.config, data=Data(data.train, data.train_images))
    if run.parent is not None:
        first = workshop.run_folder(run.parent)
        config = replace(config, retrain=Retrain(str(first)))
    if config.run.workers == -1:
        config = replace(config, run=replace(config.run, workers=workshop.workers))
    return config


def _settings(
    scale: Scale,
    parts: Sequence[str],
    conditions: Iterable[str],
    workshop: Workshop,
    model: LoadedModel,
) -> Settings:
    """The prediction settings: enough detections for the highest limits."""
    image, group = scale.dets_per_image, scale.dets_per_class
    if LIMITS in parts:
        rows = [scale.limits(one) for one in conditions if part_of(one) == LIMITS]
        image = max([image, *(row.dets_per_image or 0 for row in rows)])
        group = max([group, *(row.dets_per_class or 0 for row in rows)])
    on_gpu = next(model.detector.parameters()).device.type == "cuda"
    return Settings(
        dets_per_class=group,
        dets_per_image=image,
        score=scale.predict.score,
        nms=(NMS_FIRST, *(NMS_OTHERS if NMS in parts else ())),
        masks=scale.predict.masks,
        batch=scale.predict.batch,
        workers=0 if model.config.run.workers == 0 else workshop.workers,
        precision=scale.predict.precision if on_gpu else "fp32",
        overwrite=True,
    )


def _predict(
    model: LoadedModel, annotations: Path, images: Path, out: Path, settings: Settings
) -> None:
    predict(model, annotated_images(annotations, images).images, out, settings)


def _without_paths(config: Config) -> dict[str, Any]:
    values = flat_values(config)
    return {
        key: value
        for key, value in values.items()
        if not key.startswith("data.") and key != "retrain.checkpoint"
    }
