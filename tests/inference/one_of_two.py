"""One of two processes that predict together, again and again.

    RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=… python one_of_two.py FOLDER

prints what it met as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch

from inference.random_detector import RandomDetector, random_model
from lvdet.errors import LvdetError
from lvdet.inference import validation
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.training.configuration.config import Data, Run
from lvdet.training.data.batch import Batch
from lvdet.training.loop.processes import Process, joined

CHOSEN = Settings(dets_per_class=25, dets_per_image=6, nms=(0.3, 0.6), batch=2, workers=0)
BOXES = replace(CHOSEN, masks=False, nms=(0.5,))


class Failing(RandomDetector):
    """Fails at a call of `features`."""

    def __init__(self, at: int) -> None:
        super().__init__(3)
        self.at = at

    def features(self, batch: Batch) -> list[torch.Tensor]:
        if len(self.batches) == self.at:
            raise LvdetError("the detector fell over")
        return super().features(batch)


def main(folder: Path, process: Process) -> dict[str, Any]:
    images = [(number, Path(path)) for number, path in json.loads((folder / "list").read_text())]
    met: dict[str, Any] = {}

    def predicted(name: str, settings: Settings, fails_at: int = -1, damaged: bool = False) -> None:
        detector = Failing(fails_at)
        model = random_model(detector)  # type: ignore[arg-type]
        some = [(i, folder / "damaged" / path.name) for i, path in images] if damaged else images
        try:
            summary = predict(model, some, folder / name, settings, process=process)
        except LvdetError as error:
            met.setdefault(name, []).append([type(error).__name__, str(error)])
        else:
            met.setdefault(name, []).append([summary.images, len(summary.files), summary.notes])
        met[name].append(len(detector.batches))

    predicted("both.jsonl", CHOSEN)
    predicted("boxes.json", BOXES)
    predicted("few.jsonl", replace(CHOSEN, batch=16))  # one batch
    for fails_at in (1, 4):  # in the first pass, and in the second
        predicted("failed.jsonl", CHOSEN, fails_at if process.rank == 1 else -1)
    predicted("failed.jsonl", CHOSEN)
    predicted("left.jsonl", CHOSEN, 1 if process.rank == 0 else -1)
    predicted("sound.jsonl", CHOSEN, damaged=True)
    predicted("sound.jsonl", replace(CHOSEN, skip_damaged=True), damaged=True)
    predicted("both.jsonl", CHOSEN)
    met["evaluation"] = evaluated(folder, process)
    return met


def evaluated(folder: Path, process: Process) -> dict[str, Any]:
    """While training, on val.json."""
    detector = RandomDetector(3)
    config = replace(
        random_model(detector).config,
        data=Data("train.json", "images", str(folder / "val.json"), str(folder / "images")),
        run=Run(workers=0),
    )
    return validation.evaluate(detector, config, folder / "run", 5, process)  # type: ignore[arg-type]


if __name__ == "__main__":
    torch.set_num_threads(1)
    with joined("cpu") as this:
        print(json.dumps(main(Path(sys.argv[1]), this)))
