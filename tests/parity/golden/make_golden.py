"""Writes metrics.json beside this file: what lvis and pycocotools say of seeded cases.

    python tests/parity/golden/make_golden.py

The cases are those of `oracles.cases`. Each is recorded with a checksum of its files, so that a
case that changes is not taken for a number that does.
"""

from __future__ import annotations

import json
import sys
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from oracles.cases import coco_case, lvis_case

FILE = Path(__file__).with_name("metrics.json")
SEEDS = range(500, 512)
Json = dict[str, Any]


def cases() -> list[tuple[str, bool, int]]:
    """Format, whether there are masks, and seed."""
    return [
        (kind, masks, seed)
        for kind in ("lvis", "coco")
        for masks in (False, True)
        for seed in SEEDS
    ]


def files_of(kind: str, masks: bool, seed: int) -> tuple[Json, list[Json]]:
    return (lvis_case if kind == "lvis" else coco_case)(seed, masks)


def checksum(annotations: Json, results: list[Json]) -> int:
    return zlib.crc32(json.dumps([annotations, results], sort_keys=True).encode())


def metrics_of(kind: str, annotations: Json, results: list[Json], iou: str) -> Json:
    """AP-Old at 300 and 5 detections per image and AP-Fixed at 10,000 and 4 per class; for COCO its
    own twelve."""
    from oracles.coco_reference import evaluate_coco
    from oracles.lvis_reference import cut_per_class, evaluate_lvis

    if kind == "coco":
        return {"old": evaluate_coco(annotations, results, iou)}
    found = {f"old {limit}": evaluate_lvis(annotations, results, iou, limit) for limit in (300, 5)}
    for limit in (10_000, 4):
        cut = cut_per_class(results, limit)
        found[f"fixed {limit}"] = evaluate_lvis(annotations, cut, iou, -1)
    return found


def main() -> None:
    made = []
    for kind, masks, seed in cases():
        annotations, results = files_of(kind, masks, seed)
        made.append(
            {
                "format": kind,
                "masks": masks,
                "seed": seed,
                "checksum": checksum(annotations, results),
                "metrics": metrics_of(kind, annotations, results, "segm" if masks else "bbox"),
            }
        )
    origin = {name: version(name) for name in ("lvis", "pycocotools")}
    lines = ",\n".join(json.dumps(case) for case in made)
    FILE.write_text(f'{{"origin": {json.dumps(origin)}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
