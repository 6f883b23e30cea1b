"""A diagnosis in words of the files: ids and row numbers in place of rows of tables."""

from __future__ import annotations

import json
import math
from typing import Any

import lvdet
from lvdet.diagnosis.kinds import ROW_KINDS
from tabled import TOLERANCE

Json = dict[str, Any]


def kinds_by_row(diagnosis: lvdet.Diagnosis, rows: int) -> list[str]:
    """What each row of the results is; rows that were not matched at all are not counted."""
    kinds = ["not counted"] * rows
    for row, kind in zip(diagnosis.rows.detection.tolist(), diagnosis.rows.kind, strict=True):
        kinds[row] = ROW_KINDS[kind]
    return kinds


def targets_by_row(
    diagnosis: lvdet.Diagnosis, gt: lvdet.GroundTruth, *kinds: str
) -> dict[int, int]:
    """The annotation that each row of these kinds is judged by."""
    rows = diagnosis.rows
    return {
        int(row): int(gt.id[target])
        for row, kind, target in zip(rows.detection, rows.kind, rows.target, strict=True)
        if ROW_KINDS[kind] in kinds
    }


def numbers(diagnosis: lvdet.Diagnosis) -> str:
    """Everything but the names of the files."""
    return json.dumps(diagnosis.numbers())


def same(ours: float, expected: float) -> bool:
    """To 1e-12; undefined where undefined."""
    return math.isnan(expected) == math.isnan(ours) and not abs(ours - expected) > TOLERANCE
