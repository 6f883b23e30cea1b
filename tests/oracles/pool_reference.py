"""Slow and obvious AP, written from docs/semantics.md alone: AP-Pool and per-class AP.

There is no package to compare AP-Pool with, and none that computes the corrected
default. So this is plain Python, one loop a rule; only the overlaps come from
pycocotools. The per-class half is checked against lvis, and shares its matching and
its precision with the pooled half.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pycocotools.mask as coco_mask

from oracles.boundary_reference import boundary_ious
from oracles.lvis_reference import cut_per_class

Json = dict[str, Any]
Overlap = Callable[[list[Any], list[Any], list[int]], Any]
Range = tuple[float, float]

THRESHOLDS: list[float] = np.linspace(0.5, 0.95, 10).tolist()
RECALLS: list[float] = np.linspace(0, 1, 101).tolist()
EPS = float(np.spacing(1))
RANGES: dict[str, Range] = {
    "": (0, 1e5**2),
    "s": (0, 32**2),
    "m": (32**2, 96**2),
    "l": (96**2, 1e5**2),
}


@dataclass(frozen=True)
class Truth:
    """One annotation, as the matching sees it."""

    shape: Any  # box or RLE
    area: float
    ignore: bool
    crowd: bool
    is_zero: bool  # its id reads as "unmatched"


@dataclass(frozen=True)
class Found:
    """One detection. `excused`: its class is not exhaustively annotated in the image."""

    shape: Any
    area: float
    score: float
    excused: bool


@dataclass
class Cell:
    """One image and class: annotations in file order, detections by descending score."""

    truths: list[Truth]
    founds: list[Found]
    ious: Any


@dataclass(frozen=True)
class Ranked:
    """A detection's outcome at one threshold; an ignored one is neither right nor wrong."""

    score: float
    right: bool
    ignored: bool


@dataclass(frozen=True)
class Curve:
    """Precision at the 101 recalls and the recall reached, at one threshold."""

    precision: list[float]
    recall: float


def evaluate_pool(
    annotations: Json,
    results: Sequence[Json],
    iou: str,
    per_class: int = 10_000,
    exact_lvis: bool = True,
) -> dict[str, float | None]:
    """AP-Pool of LVIS or COCO files: all classes ranked together, None where undefined.

    Each class keeps its `per_class` best first, on all detections. `exact_lvis`: an
    annotation id of 0 reads as unmatched (also for COCO files, where pycocotools does
    the same) and annotations of area 0 are dropped from LVIS files. `iou` is bbox, segm
    or boundary. Files without frequencies give None for APr, APc and APf.
    """
    cells = _cells(annotations, cut_per_class(results, per_class), iou, exact_lvis)
    groups = _groups(annotations)
    pooled = {name: _curves(cells, groups[name], RANGES[""], exact_lvis) for name in ("", *"rcf")}
    everything = pooled[""]
    return {
        "AP": _mean_precision([everything]),
        "AP50": _mean_precision([everything], 0.5),
        "AP75": _mean_precision([everything], 0.75),
        **{f"AP{name}": _mean_precision([pooled[name]]) for name in "rcf"},
    }


def evaluate_slow(
    annotations: Json,
    results: Sequence[Json],
    iou: str,
    keep: Sequence[bool] | None = None,
    exact_lvis: bool = True,
) -> dict[str, float | None]:
    """Per-class AP and AR with lvis's thirteen keys, for results that are already cut.

    `keep` is a row mask, for budgets that are masks. Unlike lvis and pycocotools a
    detection's area is its mask's for segm, and w * h for bbox, whatever the results
    carry: strip `bbox` before comparing area ranges of masks.
    """
    if keep is not None:
        results = [row for row, kept in zip(results, keep, strict=True) if kept]
    cells = _cells(annotations, results, iou, exact_lvis)
    groups = _groups(annotations)
    by_area = {
        name: {one: _curves(cells, {one}, area, exact_lvis) for one in groups[""]}
        for name, area in RANGES.items()
    }
    everything = by_area[""]
    metrics = {
        "AP": _mean_precision(everything.values()),
        "AP50": _mean_precision(everything.values(), 0.5),
        "AP75": _mean_precision(everything.values(), 0.75),
    }
    for name in "sml":
        metrics[f"AP{name}"] = _mean_precision(by_area[name].values())
    for name in "rcf":
        metrics[f"AP{name}"] = _mean_precision(everything[one] for one in sorted(groups[name]))
    for name in RANGES:
        metrics[f"AR{name}"] = _mean_recall(by_area[name].values())
    return metrics


def labels_slow(
    annotations: Json,
    results: Sequence[Json],
    iou: str,
    threshold: float,
    per_class: int = 10_000,
) -> dict[int, list[tuple[float, bool]]]:
    """Score and outcome of all that AP counts at an IoU, by category id and descending score;
    equal scores by image, in an image by rank. Each class keeps its `per_class` best first."""
    cells = _cells(annotations, cut_per_class(results, per_class), iou, exact_lvis=False)
    labels = {}
    for one in sorted(_groups(annotations)[""]):
        rows = [
            row
            for place in sorted(cells)
            if place[1] == one
            for row in _rank(cells[place], threshold, RANGES[""], exact_lvis=False)
        ]
        rows.sort(key=lambda row: -row.score)
        labels[one] = [(row.score, row.right) for row in rows if not row.ignored]
    return labels


def _groups(annotations: Json) -> dict[str, set[int]]:
    """Category ids of all classes ("") and of each frequency."""
    groups: dict[str, set[int]] = {"": set(), "r": set(), "c": set(), "f": set()}
    for category in annotations["categories"]:
        groups[""].add(category["id"])
        if "frequency" in category:
            groups[category["frequency"]].add(category["id"])
    return groups


def _cells(
    annotations: Json, results: Sequence[Json], iou: str, exact_lvis: bool
) -> dict[tuple[int, int], Cell]:
    """What counts of the two files, by (image id, category id)."""
    images = {image["id"]: image for image in annotations["images"]}
    classes = {category["id"] for category in annotations["categories"]}
    federated = any("neg_category_ids" in image for image in annotations["images"])
    truths: dict[tuple[int, int], list[Truth]] = defaultdict(list)
    for row in annotations["annotations"]:
        if federated and exact_lvis and row["area"] <= 0:
            continue
        place = row["image_id"], row["category_id"]
        truths[place].append(_truth(row, images[row["image_id"]], iou, federated))
    founds: dict[tuple[int, int], list[Found]] = defaultdict(list)
    for row in results:
        place = image_id, class_id = row["image_id"], row["category_id"]
        image = images[image_id]
        if class_id not in classes:
            continue
        if federated and class_id not in image["neg_category_ids"] and not truths.get(place):
            continue
        found = _found(row, image, iou, federated)
        if federated and found.area <= 0:
            continue
        founds[place].append(found)
    return {
        place: _cell(truths.get(place, []), founds.get(place, []), iou)
        for place in {*truths, *founds}
    }


def _truth(row: Json, image: Json, iou: str, federated: bool) -> Truth:
    crowd = not federated and bool(row["iscrowd"])
    return Truth(
        shape=_shape(row, image, iou),
        area=row["area"],
        # pycocotools overwrites `ignore` by `iscrowd`; lvis reads no `iscrowd`.
        ignore=bool(row.get("ignore", 0)) if federated else crowd,
        crowd=crowd,
        is_zero=row["id"] == 0,
    )


def _found(row: Json, image: Json, iou: str, federated: bool) -> Found:
    shape = _shape(row, image, iou)
    return Found(
        shape=shape,
        area=shape[2] * shape[3] if iou == "bbox" else float(coco_mask.area(shape)),
        score=row["score"],
        excused=federated and row["category_id"] in image["not_exhaustive_category_ids"],
    )


def _shape(row: Json, image: Json, iou: str) -> Any:
    """The row's box [x, y, w, h] or mask, made from the other where only that is given."""
    if iou == "bbox":
        if "bbox" in row:
            return row["bbox"]
        return coco_mask.toBbox(rle_of(row["segmentation"], image)).tolist()
    if "segmentation" in row:
        return rle_of(row["segmentation"], image)
    x, y, w, h = row["bbox"]
    return rle_of([[x, y, x, y + h, x + w, y + h, x + w, y]], image)


def rle_of(segmentation: Any, image: Json) -> Json:
    """Polygons, runs or compressed runs as compressed runs."""
    rle: Json = segmentation
    if isinstance(segmentation, list):
        parts = coco_mask.frPyObjects(segmentation, image["height"], image["width"])
        rle = coco_mask.merge(parts)
    elif isinstance(segmentation["counts"], list):
        rle = coco_mask.frPyObjects(segmentation, image["height"], image["width"])
    return rle


def _cell(truths: list[Truth], founds: list[Found], iou: str) -> Cell:
    founds = sorted(founds, key=lambda found: -found.score)
    overlap: Overlap = boundary_ious if iou == "boundary" else coco_mask.iou
    ious = overlap(
        [found.shape for found in founds],
        [truth.shape for truth in truths],
        [int(truth.crowd) for truth in truths],
    )
    return Cell(truths, founds, ious)


def _outside(area: float, limits: Range) -> bool:
    return area < limits[0] or area > limits[1]


def _ignored(truths: list[Truth], limits: Range) -> list[bool]:
    return [truth.ignore or _outside(truth.area, limits) for truth in truths]


def _match(cell: Cell, ignored: list[bool], threshold: float) -> list[int | None]:
    """For each detection the index of its annotation, or None."""
    # Ignored annotations are looked at last; sorted() keeps the file order otherwise.
    order = sorted(range(len(cell.truths)), key=lambda index: ignored[index])
    taken: set[int] = set()
    matches: list[int | None] = []
    for row in range(len(cell.founds)):
        best: int | None = None
        best_iou = min(threshold, 1 - 1e-10)
        for index in order:
            if index in taken and not cell.truths[index].crowd:
                continue
            if best is not None and not ignored[best] and ignored[index]:
                break
            if cell.ious[row][index] >= best_iou:  # at equal IoU the later one wins
                best, best_iou = index, cell.ious[row][index]
        if best is not None:
            taken.add(best)
        matches.append(best)
    return matches


def _rank(cell: Cell, threshold: float, limits: Range, exact_lvis: bool) -> list[Ranked]:
    """The cell's detections at one threshold, by descending score."""
    ignored = _ignored(cell.truths, limits)
    ranked = []
    for found, index in zip(cell.founds, _match(cell, ignored, threshold), strict=True):
        matched = index is not None and not (exact_lvis and cell.truths[index].is_zero)
        excused = found.excused or _outside(found.area, limits)
        neither = (index is not None and ignored[index]) or (not matched and excused)
        ranked.append(Ranked(found.score, matched, neither))
    return ranked


def _curves(
    cells: dict[tuple[int, int], Cell], classes: set[int], limits: Range, exact_lvis: bool
) -> list[Curve] | None:
    """One curve a threshold for the classes pooled, None without ground truth."""
    # Sorted places are images ascending outermost, classes ascending inside.
    chosen = [cells[place] for place in sorted(cells) if place[1] in classes]
    positives = sum(_ignored(cell.truths, limits).count(False) for cell in chosen)
    if positives == 0:
        return None
    curves = []
    for threshold in THRESHOLDS:
        rows = [row for cell in chosen for row in _rank(cell, threshold, limits, exact_lvis)]
        curves.append(_curve(sorted(rows, key=lambda row: -row.score), positives))
    return curves


def _curve(rows: list[Ranked], positives: int) -> Curve:
    """Precision and recall of rows in ranking order."""
    right = wrong = 0
    recall, precision = [], []
    for row in rows:
        right += row.right and not row.ignored
        wrong += not row.right and not row.ignored
        recall.append(right / positives)
        precision.append(right / (wrong + right + EPS))
    for index in reversed(range(len(precision) - 1)):
        precision[index] = max(precision[index], precision[index + 1])
    first = [bisect_left(recall, wanted) for wanted in RECALLS]
    read = [precision[index] if index < len(precision) else 0.0 for index in first]
    return Curve(read, recall[-1] if recall else 0.0)


def _mean_precision(
    groups: Iterable[list[Curve] | None], threshold: float | None = None
) -> float | None:
    chosen = [
        curve
        for curves in groups
        if curves is not None
        for at, curve in zip(THRESHOLDS, curves, strict=True)
        if threshold is None or at == threshold
    ]
    return _mean([value for curve in chosen for value in curve.precision])


def _mean_recall(groups: Iterable[list[Curve] | None]) -> float | None:
    return _mean([curve.recall for curves in groups if curves is not None for curve in curves])


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
