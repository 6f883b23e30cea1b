"""Detections as frameworks' loops pass them: image by image, corners in float32."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.cases import decoded

Json = dict[str, Any]


@dataclass(frozen=True)
class ImageDetections:
    """corners: [n, 4] float32; scores: [n] float32; labels: [n] rows of the sorted class ids."""

    image_id: int
    corners: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.scores)

    def results(self, category_ids: list[int]) -> list[Json]:
        """As a results list holds them: sizes are computed in float32."""
        size = self.corners[:, 2:] - self.corners[:, :2]
        box = np.concatenate([self.corners[:, :2], size], axis=1)
        return [
            {
                "image_id": self.image_id,
                "category_id": category_ids[label],
                "bbox": box[row].tolist(),
                "score": float(self.scores[row]),
            }
            for row, label in enumerate(self.labels)
        ]


def class_ids(annotations: Json) -> list[int]:
    """Sorted class ids."""
    return sorted(one["id"] for one in annotations["categories"])


def per_image(annotations: Json, results: list[Json]) -> Iterator[ImageDetections]:
    """All images of the annotations, with the results that a loop can have."""
    row_of = {class_id: row for row, class_id in enumerate(class_ids(annotations))}
    by_image: dict[int, list[Json]] = {one["id"]: [] for one in annotations["images"]}
    for one in results:
        if one["image_id"] in by_image and one["category_id"] in row_of:
            by_image[one["image_id"]].append(one)
    for image_id, rows in by_image.items():
        box = np.array([_box(one) for one in rows], dtype=np.float64).reshape(-1, 4)
        corners = np.concatenate([box[:, :2], box[:, :2] + box[:, 2:]], axis=1)
        yield ImageDetections(
            image_id,
            corners.astype(np.float32),
            np.array([one["score"] for one in rows], dtype=np.float32),
            np.array([row_of[one["category_id"]] for one in rows], dtype=np.int64),
        )


def bitmaps(annotations: Json, results: list[Json]) -> dict[int, NDArray[np.bool_]]:
    """[n, height, width] masks of each image's detections, in the order of `per_image`."""
    known = set(class_ids(annotations))
    found: dict[int, NDArray[np.bool_]] = {}
    for image in annotations["images"]:
        rows = [
            decoded(one["segmentation"])
            for one in results
            if one["image_id"] == image["id"] and one["category_id"] in known
        ]
        shape = (-1, image["height"], image["width"])
        found[image["id"]] = np.array(rows, dtype=bool).reshape(shape if rows else (0, *shape[1:]))
    return found


def _box(row: Json) -> list[float]:
    if "bbox" in row:
        return row["bbox"]
    height, width = row["segmentation"]["size"]
    return [0.0, 0.0, width / 2, height / 2]
