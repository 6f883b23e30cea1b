"""Small annotation files and images, written by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from lvdet.training.data import Dataset, read_dataset
from oracles.cases import runs_of


@dataclass
class SmallSet:
    """An annotation file in the making, and its images."""

    folder: Path
    images: list = field(default_factory=list)
    annotations: list = field(default_factory=list)
    categories: list = field(default_factory=list)

    def image(self, number: int, height: int, width: int, **more) -> np.ndarray:
        """Adds an image of random pixels; returns them."""
        pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)
        self.add(number, pixels, **more)
        return pixels

    def add(self, number: int, pixels: np.ndarray, name: str = "", **more) -> None:
        """Adds an image of these pixels."""
        name = name or f"{number}.png"
        self.folder.mkdir(exist_ok=True, parents=True)
        Image.fromarray(pixels).save(self.folder / name)
        height, width, _ = pixels.shape
        record = {"id": number, "height": height, "width": width, "file_name": name}
        self.images.append(record | more)

    def annotation(self, image: int, category: int, bbox, segmentation=None, **more) -> None:
        x, y, w, h = bbox
        self.annotations.append(
            {
                "id": len(self.annotations) + 1,
                "image_id": image,
                "category_id": category,
                "bbox": list(bbox),
                "area": w * h,
                "segmentation": segmentation or [[x, y, x + w, y, x + w, y + h, x, y + h]],
            }
            | more
        )

    def category(self, number: int, **more) -> None:
        self.categories.append({"id": number, "name": f"class {number}"} | more)

    def content(self) -> dict:
        return {
            "info": {"year": 2020, "parts": [1, {"a": None}]},
            "annotations": self.annotations,
            "images": self.images,
            "licenses": [],
            "categories": self.categories,
        }

    def write(self, **layout) -> Path:
        path = self.folder / "annotations.json"
        path.write_text(json.dumps(self.content(), **layout), encoding="utf-8")
        return path

    def read(self) -> Dataset:
        return read_dataset(self.write(), self.folder)


def random_set(folder: Path, images: int = 12, classes: int = 7, seed: int = 0) -> SmallSet:
    """Images of many sizes with 1 to 10 objects each, half of them with run lengths."""
    random = np.random.default_rng(seed)
    made = SmallSet(folder)
    for number in range(1, classes + 1):
        made.category(number)
    for image in range(1, images + 1):
        height, width = (int(n) for n in random.integers(20, 60, 2))
        made.image(image, height, width)
        for place in range(int(random.integers(1, 11))):
            w, h = (int(n) for n in random.integers(2, 12, 2))
            x, y = int(random.integers(width - w)), int(random.integers(height - h))
            runs = None
            if place % 2:
                inside = np.zeros((height, width), bool)
                inside[y : y + h, x : x + w] = random.random((h, w)) < 0.8
                runs = {"size": [height, width], "counts": runs_of(inside)}
            made.annotation(image, int(random.integers(1, classes + 1)), (x, y, w, h), runs)
    return made
