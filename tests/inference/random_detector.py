"""A detector that sees boxes and masks where an image's pixels say so, and images for it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from lvdet.training.configuration.config import Config, Input, Model
from lvdet.training.data.batch import Batch
from lvdet.training.model.candidates import Candidates
from lvdet.training.model.classifier import Frequencies
from lvdet.training.model.recipe import PAPER
from lvdet.training.records.checkpoint import LoadedModel
from lvdet.training.records.vocabulary import Vocabulary

SIZE = Input(by="shortest", sizes=(48,), largest=80)


@dataclass(frozen=True)
class RandomCandidates(Candidates):
    """With boxes of each class as they are, in place of codes."""

    def boxes(self, place: Tensor) -> Tensor:
        if self.code is None:
            return super().boxes(place)
        return self.code.flatten(0, 2)[place]

    def of(self, images: Tensor) -> Candidates:
        return RandomCandidates(**vars(super().of(images)))


class RandomDetector(nn.Module):
    """Random candidates, the same for the same image whatever it is batched with.

    Boxes are at half pixels and scores are few, so that there are many ties. Masks depend on the
    box and the class.

    apart: boxes for each class
    calls: how many boxes masks were made of
    """

    def __init__(
        self, classes: int, rois: int = 30, levels: int = 12, apart: bool = True, seed: int = 0
    ) -> None:
        super().__init__()
        self.recipe = PAPER
        self.classes, self.rois, self.levels, self.apart = classes, rois, levels, apart
        self.seed = nn.Parameter(torch.tensor(float(seed)))
        self.calls = 0
        self.batches: list[int] = []

    def features(self, batch: Batch) -> list[Tensor]:
        self.batches.append(len(batch.pixels))
        return [
            image[:, :height, :width]
            for image, (height, width) in zip(batch.pixels, batch.size.tolist(), strict=True)
        ]

    def candidates(self, features: list[Tensor], batch: Batch) -> Candidates:
        boxes, scores = [], []
        for image, (height, width) in zip(features, batch.size.tolist(), strict=True):
            rng = np.random.default_rng([int(image.sum(dtype=torch.int64)), int(self.seed)])
            shape = (self.rois, self.classes) if self.apart else (self.rois,)
            x = np.sort(rng.integers(0, 2 * width + 1, (*shape, 2)) / 2, axis=-1)
            y = np.sort(rng.integers(0, 2 * height + 1, (*shape, 2)) / 2, axis=-1)
            box = np.stack([x[..., 0], y[..., 0], x[..., 1], y[..., 1]], axis=-1)
            score = rng.integers(0, self.levels, (self.rois, self.classes)) / self.levels
            boxes.append(torch.tensor(box).float())
            scores.append(torch.tensor(score).float())
        box, score = torch.stack(boxes), torch.stack(scores)
        shared = box[:, :, 0] if self.apart else box
        code = box if self.apart else None
        return RandomCandidates(score, shared, batch.size, code, (1.0, 1.0, 1.0, 1.0))

    def masks(
        self, features: list[Tensor], batch: Batch, image: Tensor, box: Tensor, label: Tensor
    ) -> Tensor:
        self.calls += len(box)
        maps = []
        for place, corners, name in zip(image.tolist(), box.tolist(), label.tolist(), strict=True):
            content = int(features[place].sum(dtype=torch.int64))
            corner = [round(2 * value) for value in corners]
            rng = np.random.default_rng([content, *corner, name])
            coarse = torch.tensor(rng.random((1, 1, 4, 4))).float()
            maps.append(nn.functional.interpolate(coarse, (28, 28), mode="bilinear")[0, 0])
        return torch.stack(maps)


class Stopped(RandomDetector):
    """Is interrupted at a call of `features`, the one of number `stop`."""

    def __init__(self, classes: int, stop: int) -> None:
        super().__init__(classes)
        self.stop = stop

    def features(self, batch: Batch) -> list[Tensor]:
        if len(self.batches) == self.stop:
            raise KeyboardInterrupt
        return super().features(batch)


def random_model(detector: RandomDetector, *, masks: bool = True) -> LoadedModel:
    """With category ids that are not class rows."""
    ids = np.arange(detector.classes, dtype=np.int64) * 3 + 5
    none = np.zeros(detector.classes, dtype=np.int64)
    names = [f"class_{number}" for number in ids.tolist()]
    vocabulary = Vocabulary(ids, names, None, Frequencies(1, none, none))
    config = Config(input=SIZE, model=Model(masks=masks))
    return LoadedModel(detector, config, vocabulary, 7)  # type: ignore[arg-type]


def write_images(folder: Path, count: int, seed: int = 0) -> list[tuple[int, Path]]:
    """Noise of different sizes, under ids in no order."""
    rng = np.random.default_rng(seed)
    images = []
    for number, image_id in enumerate(rng.permutation(5 * count)[:count].tolist()):
        height, width = rng.integers(20, 70, 2)
        path = folder / f"image{number:03}.png"
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)
        images.append((image_id - 3, path))
    return images
