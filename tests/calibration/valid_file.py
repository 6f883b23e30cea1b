"""A calibrator's file written by hand, as docs/calibration.md and the module describe it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lvdet

Json = dict[str, Any]

#: Three classes: one of each frequency that has a map, one of each shape of map.
VALID: Json = {
    "lvdet_calibrator": 1,
    "method": "beta",
    "grouping": "class",
    "missing": "zero",
    "fitted_on": {
        "ground_truth": "train.json",
        "detections": "results.json",
        "iou": "segm",
        "iou_threshold": 0.75,
        "dets_per_class": 10000,
    },
    "classes": {
        "id": [3, 4, 9],
        "name": ["cat", "dog", "hot dog"],
        "frequency": ["r", "c", "f"],
        "detections": [5, 0, 7],
        "right": [2, 0, 7],
        "map": [0, 1, 2],
    },
    "maps": [
        {"shape": "log-odds", "a": 1.5, "b": 0.25, "c": -0.5},
        {"shape": "steps", "edges": [0.25, 0.5], "values": [0.125, 0.0, 1.0]},
        {"shape": "lines", "scores": [0.1, 0.5, 0.9], "values": [0.2, 0.2, 0.7]},
    ],
}

#: Scores that try every part of a map: both ends, edges, and what lies between.
SCORES = np.array([0.0, 1e-12, 0.1, 0.2, 0.25, 0.3, 0.5, 0.75, 0.9, 1 - 1e-12, 1.0])


def copied(path: tuple[str | int, ...]) -> tuple[Json, Any]:
    """A copy of the file, and what holds a place in it."""
    content = copy.deepcopy(VALID)
    holder: Any = content
    for key in path[:-1]:
        holder = holder[key]
    return content, holder


def changed(path: tuple[str | int, ...], value: Any) -> Json:
    """The file with another value at a place."""
    content, holder = copied(path)
    holder[path[-1]] = value
    return content


def without(path: tuple[str | int, ...]) -> Json:
    """The file without what is at a place."""
    content, holder = copied(path)
    del holder[path[-1]]
    return content


def places(content: Any = VALID, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place of the file below the top."""
    found: list[tuple[str | int, ...]] = [at] if at else []
    if isinstance(content, dict):
        for key, value in content.items():
            found += places(value, (*at, key))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            found += places(value, (*at, number))
    return found


def saved(path: Path, content: Any) -> Path:
    """The content as JSON, or as it is where it is text or bytes."""
    if isinstance(content, str | bytes):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    else:
        path.write_text(json.dumps(content))
    return path


def every_score_of(
    categories: lvdet.Categories, scores: NDArray[np.float64] = SCORES
) -> lvdet.Detections:
    """Each class with each of the scores."""
    ids = np.repeat(categories.ids, len(scores))
    return lvdet.Detections.from_arrays(
        np.ones(len(ids), dtype=np.int64),
        ids,
        np.tile(scores, len(categories)),
        np.tile([0.0, 0.0, 10.0, 10.0], (len(ids), 1)),
    )
