"""LaECE, LaACE, D-ECE and optimal LRP by their formulas, from plain rows.

Kuzucu et al., ECCV 2024; Küppers et al., CVPRW 2020; Oksuz et al., TPAMI 2022. Overlaps come from
pycocotools, matching from the slow reference of AP.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from oracles.pool_reference import RANGES, _cells, _ignored, _match

Json = dict[str, Any]
#: Score, whether it is a true positive, IoU with its object (0 for a false positive).
Row = tuple[float, bool, float]


def rows_slow(
    annotations: Json, results: Sequence[Json], iou: str, tau: float
) -> tuple[dict[int, list[Row]], dict[int, int]]:
    """What counts of each class, by descending score, and its objects; results are cut already. At
    tau 0 a detection needs some overlap."""
    rows: dict[int, list[Row]] = defaultdict(list)
    objects: dict[int, int] = defaultdict(int)
    for (_, category), cell in sorted(
        _cells(annotations, results, iou, exact_lvis=False).items(), key=lambda item: item[0]
    ):
        aside = _ignored(cell.truths, RANGES[""])
        objects[category] += aside.count(False)
        for place, best in enumerate(_match(cell, aside, tau or 1e-300)):
            score = cell.founds[place].score
            if best is None:
                if not cell.founds[place].excused:
                    rows[category].append((score, False, 0.0))
            elif not aside[best]:
                rows[category].append((score, True, float(cell.ious[place][best])))
    return {name: sorted(some, key=lambda row: -row[0]) for name, some in rows.items()}, objects


def bin_of(score: float, bins: int) -> int:
    """The bin (k / bins, (k + 1) / bins] of a score; the first has 0 too."""
    return max(math.ceil(Fraction(repr(score)) * bins) - 1, 0)


def ece_slow(pairs: Sequence[tuple[float, float]], bins: int) -> float:
    """Σ_j |D_j| / |D| · |mean score − mean target|."""
    members: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for score, target in pairs:
        members[bin_of(score, bins)].append((score, target))
    return sum(
        len(some)
        / len(pairs)
        * abs(np.mean([score for score, _ in some]) - np.mean([target for _, target in some]))
        for some in members.values()
    )


def laece_slow(rows: Sequence[Row], bins: int = 25) -> float:
    """Σ_j |D_j| / |D| · |mean score − precision · mean IoU of true positives|, of one class."""
    members: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        members[bin_of(row[0], bins)].append(row)
    error = 0.0
    for some in members.values():
        overlaps = [overlap for _, right, overlap in some if right]
        precision = len(overlaps) / len(some)
        target = precision * float(np.mean(overlaps)) if overlaps else 0.0
        error += len(some) / len(rows) * abs(float(np.mean([row[0] for row in some])) - target)
    return error


def laace_slow(rows: Sequence[Row]) -> float:
    """Mean |score − IoU|, of one class."""
    return float(np.mean([abs(score - overlap) for score, _, overlap in rows]))


def lrp_slow(
    rows: Sequence[Row], objects: int, tau: float
) -> tuple[float, float, float, float, float]:
    """Threshold, LRP, and its localisation, FP and FN components, at the threshold of lowest LRP;
    the highest among equals."""
    best = (math.nan, 1.0, math.nan, math.nan, 1.0)
    for threshold in sorted({row[0] for row in rows}, reverse=True):
        kept = [row for row in rows if row[0] >= threshold]
        distance = [1 - overlap for _, right, overlap in kept if right]
        if not distance:
            continue
        tp, fp = len(distance), len(kept) - len(distance)
        fn = objects - tp
        error = (sum(distance) / (1 - tau) + fp + fn) / (tp + fp + fn)
        if math.isnan(best[0]) or error < best[1] - 1e-13:
            best = threshold, error, sum(distance) / tp, fp / (tp + fp), fn / objects
    return best
