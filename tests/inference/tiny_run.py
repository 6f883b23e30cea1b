"""A checkpoint of a real detector, small and never trained, and images for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

from lvdet.training.configuration.config import Config, Data, Input, Model, Run
from lvdet.training.model.build import build_detector
from lvdet.training.model.classifier import Frequencies
from lvdet.training.records.checkpoint import Described, save_checkpoint
from lvdet.training.records.vocabulary import Vocabulary
from training.data.small_sets import SmallSet

NAMES = ["ant", "bee", "wasp_nest", "fly"]
IDS = [2, 3, 5, 9]


def write_run(folder: Path) -> Path:
    """A run with a checkpoint whose scores are not all alike, beside val.json and its images."""
    write_val(folder)
    torch.manual_seed(0)
    config = Config(
        data=Data(
            "train.json", "images", val=str(folder / "val.json"), val_images=str(folder / "images")
        ),
        input=Input(sizes=(64,), largest=96),
        model=Model(backbone="tiny", weights="none", norm="group", anchors=(8, 16, 24, 32, 48)),
        run=Run(workers=0),
    )
    counts = np.array([9, 7, 5, 3], dtype=np.int64)
    frequencies = Frequencies(10, counts, counts)
    detector = build_detector(config, frequencies)
    with torch.no_grad():
        for parameter in detector.parameters():
            if parameter.ndim == 2:
                parameter.mul_(4)
    vocabulary = Vocabulary(np.array(IDS), NAMES, None, frequencies)
    save_checkpoint(folder / "run", detector, {}, Described(config, vocabulary, 12, ()), {}, 1)
    return folder


def write_val(folder: Path) -> None:
    """Images of discs, and their annotations in COCO's format."""
    rng = np.random.default_rng(1)
    made = SmallSet(folder / "images")
    made.categories = [{"id": i, "name": name} for i, name in zip(IDS, NAMES, strict=True)]
    for number in range(5):
        width, height = (int(side) for side in rng.integers(50, 100, 2))
        picture = Image.new("RGB", (width, height), (90, 110, 100))
        pen = ImageDraw.Draw(picture)
        for _ in range(3):
            x, y = int(rng.integers(0, width - 20)), int(rng.integers(0, height - 20))
            pen.ellipse((x, y, x + 18, y + 18), fill=tuple(rng.integers(0, 256, 3).tolist()))
            category = IDS[len(made.annotations) % len(IDS)]
            made.annotation(100 + number, category, (x, y, 19, 19))
        made.add(100 + number, np.asarray(picture), f"{number}.png")
    (folder / "val.json").write_text(json.dumps(made.content()))
