"""Random partitions of the images, and random trees of merging their partials."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

import lvdet


def parts_of(
    gt: lvdet.GroundTruth, dt: lvdet.Detections, seed: int, count: int, **settings: Any
) -> list[lvdet.Partial]:
    """Partials of the images, each in one of `count` parts, some of which may be empty."""
    of_image = np.random.default_rng(seed).integers(0, count, len(dt.image_ids))
    rows = [np.flatnonzero(of_image[dt.image] == number) for number in range(count)]
    return [lvdet.Partial.of(gt, dt[one], positions=one, **settings) for one in rows]


def merged_somehow(parts: list[lvdet.Partial], seed: int) -> lvdet.Partial:
    """Merged in a random order and tree, some of them as bytes on the way."""
    rng, left = random.Random(seed), list(parts)
    while len(left) > 1 or rng.random() < 0.3:
        chosen = rng.sample(left, rng.randint(1, len(left)))
        left = [one for one in left if not any(one is other for other in chosen)]
        merged = lvdet.Partial.merge(chosen)
        if rng.random() < 0.5:
            merged = lvdet.Partial.from_bytes(merged.to_bytes())
        left.append(merged)
    return left[0]


def written(result: lvdet.Evaluation) -> str:
    """As `lvdet evaluate --output` writes it."""
    return json.dumps(result.to_dict(), indent=2, ensure_ascii=False)
