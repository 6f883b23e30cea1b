"""A small set whose scores can be computed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Json = dict[str, Any]

#: Two rare classes and a common one; class 4 ("dog") is verified absent from image 2.
LVIS: Json = {
    "images": [
        {
            "id": number,
            "height": 100,
            "width": 100,
            "neg_category_ids": [4] if number == 2 else [],
            "not_exhaustive_category_ids": [],
        }
        for number in (1, 2)
    ],
    "categories": [
        {"id": 3, "name": "cat", "frequency": "r"},
        {"id": 4, "name": "dog", "frequency": "c"},
        {"id": 9, "name": "hot dog", "frequency": "r"},
    ],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 3, "bbox": [10, 10, 20, 20], "area": 400},
        {"id": 2, "image_id": 1, "category_id": 4, "bbox": [40, 40, 50, 50], "area": 2500},
    ],
}
#: The cat is found, the dog is not, and something in image 2 is taken for one.
FOUND: list[Json] = [
    {"image_id": 1, "category_id": 3, "bbox": [10, 10, 20, 20], "score": 0.5},
    {"image_id": 2, "category_id": 4, "bbox": [0, 0, 10, 10], "score": 0.75},
]
COCO: Json = {
    "images": [{"id": number, "height": 100, "width": 100} for number in (1, 2)],
    "categories": [{"id": row["id"], "name": row["name"]} for row in LVIS["categories"]],
    "annotations": [row | {"iscrowd": 0} for row in LVIS["annotations"]],
}


def save(path: Path, content: Any) -> Path:
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def pair(folder: Path, annotations: Any = LVIS, results: Any = FOUND) -> tuple[Path, Path]:
    """Both files."""
    return save(folder / "gt.json", annotations), save(folder / "dt.json", results)
