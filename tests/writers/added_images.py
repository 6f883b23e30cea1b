"""Images as a detector gives them, and the best of their detections by plain sorting."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import lvdet

Json = dict[str, Any]
#: An image id and its records.
Image = tuple[int, list[Json]]


def random_images(
    count: int, seed: int, *, classes: int = 4, scores: int = 12, most: int = 8
) -> list[Image]:
    """Images of few classes and few different scores, so that there are ties everywhere."""
    rng = np.random.default_rng(seed)
    images = []
    for image_id in (rng.permutation(count * 2)[:count] - 3).tolist():
        records = [
            {
                "image_id": image_id,
                "category_id": int(rng.integers(classes)) * 7,
                "bbox": rng.integers(0, 100, 4).astype(float).tolist(),
                "score": int(rng.integers(scores)) / scores,
            }
            for _ in range(int(rng.integers(most + 1)))
        ]
        images.append((image_id, records))
    return images


def best(images: Iterable[Image], dets_per_class: int, dets_per_image: int = 0) -> list[Json]:
    """The records of the best of each class and of each image, in the order in which they were
    added."""
    rows = [record for _, records in images for record in records]
    kept = set()
    for field, limit in (("category_id", dets_per_class), ("image_id", dets_per_image)):
        for group in {row[field] for row in rows}:
            places = [place for place, row in enumerate(rows) if row[field] == group]
            kept.update(sorted(places, key=lambda place: (-rows[place]["score"], place))[:limit])
    return [rows[place] for place in sorted(kept)]


def columns(records: list[Json]) -> tuple[list[Any], list[float], list[int]]:
    """Boxes, scores and labels, as `add` takes them."""
    return (
        [record["bbox"] for record in records],
        [record["score"] for record in records],
        [record["category_id"] for record in records],
    )


def add_all(sink: lvdet.TopKWriter, images: Iterable[Image]) -> None:
    """Adds the images that are not finished."""
    for image_id, records in images:
        if image_id not in sink:
            sink.add(image_id, *columns(records))


def records_of(source: Path | lvdet.Detections) -> list[Json]:
    """What a file of boxes holds."""
    dt = lvdet.read_detections(source)
    return [
        {"image_id": image, "category_id": category, "bbox": box, "score": score}
        for image, category, box, score in zip(
            dt.image_ids[dt.image].tolist(),
            dt.category_ids[dt.category].tolist(),
            dt.box.tolist(),
            dt.score.tolist(),
            strict=True,
        )
    ]


def journal_of(target: Path) -> Path:
    return target.with_name(target.name + ".parts")
