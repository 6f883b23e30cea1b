"""A set of a few small images with rectangles, and a config that trains on it in seconds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

NAMES = ("square", "bar", "post")
COLOURS = ((220, 40, 40), (40, 200, 60), (50, 70, 230))
SIDES = ((20, 20), (30, 12), (12, 30))


def write_set(folder: Path, images: int = 8, names: tuple[str, ...] = NAMES) -> Path:
    """Writes images/ and train.json in COCO's format; two objects an image."""
    random = np.random.default_rng(5)
    (folder / "images").mkdir(parents=True)
    rows, annotations = [], []
    for number in range(1, images + 1):
        pixels = random.integers(90, 160, (64, 64, 3), dtype=np.uint8)
        for _ in range(2):
            kind = len(annotations) % len(names)
            w, h = SIDES[kind % 3]
            x, y = (int(random.integers(0, 64 - side)) for side in (w, h))
            pixels[y : y + h, x : x + w] = COLOURS[kind % 3]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": kind + 1,
                    "bbox": [x, y, w, h],
                    "area": w * h,
                    "iscrowd": 0,
                    "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]],
                }
            )
        Image.fromarray(pixels).save(folder / "images" / f"{number}.png")
        rows.append({"id": number, "file_name": f"{number}.png", "width": 64, "height": 64})
    categories = [{"id": i, "name": name} for i, name in enumerate(names, start=1)]
    content = {"images": rows, "annotations": annotations, "categories": categories}
    (folder / "train.json").write_text(json.dumps(content))
    return folder / "train.json"


CONFIG = """
[data]
train = "train.json"
train_images = "images"

[input]
sizes = [64]

[model]
backbone = "tiny"
weights = "none"
norm = "group"
anchors = [8, 16, 24, 32, 48]

[schedule]
steps = 6
batch = 2
rate = 0.01
milestones = [5]
warmup_steps = 2

[run]
workers = 0
log_every = 2
checkpoint_every = 2
"""


def write_config(folder: Path, name: str = "tiny.toml") -> Path:
    """Writes the config beside the set."""
    (folder / name).write_text(CONFIG)
    return folder / name
