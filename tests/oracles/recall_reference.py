"""Class-agnostic recall of LVIS files, one image and one comparison at a time.

lvis 0.5.3 cannot be asked: with `use_cats = 0` it looks for annotations of class −1 and finds none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask

from oracles.pool_reference import rle_of

Json = dict[str, Any]

LEVELS = np.linspace(0.5, 0.95, 10)
RANGES = {"": (0.0, 1e10), "s": (0.0, 32.0**2), "m": (32.0**2, 96.0**2), "l": (96.0**2, 1e10)}


def recall_of_any_class_slow(
    annotations: Json, results: Sequence[Json], iou: str, limit: int
) -> dict[str, float | None]:
    """AR, by range of area and by frequency; detections of unknown classes are left out first."""
    frequency = {row["id"]: row["frequency"] for row in annotations["categories"]}
    found: dict[str, list[list[bool]]] = defaultdict(lambda: [[] for _ in LEVELS])
    for image in annotations["images"]:
        objects = [row for row in annotations["annotations"] if row["image_id"] == image["id"]]
        objects.sort(key=lambda row: row["category_id"])
        best = [
            row
            for row in results
            if row["image_id"] == image["id"] and row["category_id"] in frequency
        ]
        best = sorted(best, key=lambda row: -row["score"])[:limit]
        best.sort(key=lambda row: (-row["score"], row["category_id"]))
        if iou == "bbox":
            best = [row for row in best if row["bbox"][2] * row["bbox"][3] > 0]
            shapes = [[row["bbox"] for row in rows] for rows in (best, objects)]
        else:
            shapes = [
                [rle_of(row["segmentation"], image) for row in rows] for rows in (best, objects)
            ]
            flat = [coco_mask.area(shape) > 0 for shape in shapes[0]]
            best = [row for row, there in zip(best, flat, strict=True) if there]
            shapes[0] = [shape for shape, there in zip(shapes[0], flat, strict=True) if there]
        if not objects:
            continue
        overlap = (
            coco_mask.iou(*shapes, [0] * len(objects)) if best else np.zeros((0, len(objects)))
        )
        for name, (low, high) in RANGES.items():
            aside = [
                bool(row.get("ignore", 0)) or not low <= row["area"] <= high for row in objects
            ]
            for place, level in enumerate(LEVELS):
                taken = _matched(overlap, aside, level)
                for g, row in enumerate(objects):
                    if aside[g]:
                        continue
                    found[f"AR{name}"][place].append(g in taken)
                    if not name:
                        found[f"AR{frequency[row['category_id']]}"][place].append(g in taken)
    keys = ("AR", "ARs", "ARm", "ARl", "ARr", "ARc", "ARf")
    return {
        key: float(np.mean([np.mean(hits) for hits in found[key]])) if key in found else None
        for key in keys
    }


def _matched(overlap: Any, aside: list[bool], level: float) -> set[int]:
    """The objects that are taken, those that need not be found among them."""
    taken: set[int] = set()
    for row in overlap:
        for turn in (False, True):
            best, at = min(level, 1 - 1e-10), -1
            for g, value in enumerate(row):
                if aside[g] == turn and g not in taken and value >= best:
                    best, at = value, g
            if at >= 0:
                taken.add(at)
                break
    return taken
