"""Cases as files, as tables, and compared with what a reference says."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lvdet

Tables = tuple[lvdet.GroundTruth, lvdet.Detections]
TOLERANCE = 1e-12


def read_case(annotations: dict[str, Any], results: list[dict[str, Any]], folder: Path) -> Tables:
    """The case through the files a user would have."""
    gt, dt = folder / "gt.json", folder / "dt.json"
    gt.write_text(json.dumps(annotations))
    dt.write_text(json.dumps(results))
    return lvdet.read_ground_truth(gt), lvdet.read_detections(dt)


def write_case(gt: lvdet.GroundTruth, dt: lvdet.Detections, folder: Path) -> tuple[Path, Path]:
    """The tables as gt.json and dt.json."""
    lvdet.write_ground_truth(gt, folder / "gt.json")
    lvdet.write_detections(dt, folder / "dt.json")
    return folder / "gt.json", folder / "dt.json"


def assert_agree(
    ours: Mapping[str, float], reference: Mapping[str, float | None], what: str
) -> None:
    """Every metric of the reference is ours, to 1e-12; undefined where it is undefined."""
    for name, expected in reference.items():
        value = ours[name]
        if expected is None or math.isnan(expected):
            assert math.isnan(value), f"{what}: {name} is {value}, undefined in the reference"
        else:
            assert abs(value - expected) <= TOLERANCE, f"{what}: {name} {value} != {expected}"
