"""Seeded random results that are what they say, however weak: of none of them may anything be
said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import lvdet
from lvdet.limits.budgets import Budget, PerClass, PerImage, apply
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth

KINDS = (
    "as simulated",
    "one class",
    "few classes",
    "random boxes",
    "random boxes, few of them",
    "random classes",
    "diffuse classes",
    "cut at 300",
    "cut at 20",
    "cut by class",
    "above a score",
    "few detections",
    "low output",
    "shuffled rows",
    "coarse scores",
    "whole boxes",
    "loose boxes",
    "nearly empty",
    "some images without objects are not run on anything found",
    "no low scores",
    "empty",
    "classes in two parts",
    "best scores first",
)


def honest_file(seed: int) -> tuple[str, GroundTruth, Detections]:
    """The kind of a file, and its tables."""
    rng = np.random.default_rng(seed)
    style = ("lvis", "coco")[seed % 2]
    kind = KINDS[seed // 2 % len(KINDS)]
    gt, dt = lvdet.simulate(
        images=int(rng.choice([1, 2, 3, 5, 12, 20, 40, 80, 150])),
        classes=int(rng.choice([1, 2, 3, 5, 20, 80, 300])),
        objects_per_image=float(rng.choice([0.7, 2, 7, 12])),
        dets_per_image=[None, 300, 100, 30][int(rng.integers(4))],
        localisation=float(rng.uniform(0, 1)),
        bias=float(rng.choice([0, 1, 3])),
        class_bias=float(rng.choice([0, 1])),
        style=style,
        seed=seed,
    )
    return f"{kind}, {style}", gt, _weakened(kind, gt, dt, rng)


def _cut(dt: Detections, budget: Budget) -> Detections:
    keep = apply([budget], dt)
    return dt if keep is None else dt[keep]


def _weakened(kind: str, gt: GroundTruth, dt: Detections, rng: np.random.Generator) -> Detections:
    rows, classes = len(dt), len(dt.category_ids)
    if kind == "one class":
        return dt[dt.category == rng.integers(classes)]
    if kind == "few classes":
        return dt[rng.permutation(classes)[dt.category] < 3]
    if kind.startswith("random boxes"):
        rows_of = np.searchsorted(gt.images.ids, dt.image_ids)[dt.image]
        size = np.stack([gt.images.width[rows_of], gt.images.height[rows_of]], axis=1)
        low = rng.random((rows, 2)) * size
        box = np.concatenate([low, rng.random((rows, 2)) * (size - low)], axis=1)
        random = replace(dt, box=box)
        return random[rng.random(rows) < 0.1] if "few" in kind else random
    if kind == "random classes":
        return replace(dt, category=rng.integers(0, classes, rows).astype(np.int32))
    if kind == "diffuse classes":  # most are taken for one of some others
        other = (dt.category + rng.integers(1, 6, rows)) % classes
        wrong = rng.random(rows) < 0.7
        return replace(dt, category=np.where(wrong, other, dt.category).astype(np.int32))
    if kind == "cut at 300":
        return _cut(dt, PerImage(300))
    if kind == "cut at 20":
        return _cut(dt, PerImage(20))
    if kind == "cut by class":
        best = _cut(dt, PerClass(200))
        return best[np.lexsort((-best.score, best.category))]
    if kind == "above a score":
        return dt[dt.score > rng.choice([0.05, 0.3, 0.6])]
    if kind == "few detections":
        return dt[np.sort(rng.permutation(rows)[:50])]
    if kind == "low output":
        return _cut(dt, PerImage(int(rng.integers(1, 4))))
    if kind == "shuffled rows":
        return dt[rng.permutation(rows)]
    if kind == "coarse scores":
        return dt.with_scores(np.round(dt.score * 8) / 8)
    if kind == "whole boxes":
        return replace(dt, box=np.round(dt.box))
    if kind == "loose boxes":
        box = dt.box.copy()
        box[:, :2] += rng.normal(0, 0.2, (rows, 2)) * box[:, 2:]
        box[:, 2:] *= np.exp(rng.normal(0.1, 0.3, (rows, 2)))
        return replace(dt, box=box)
    if kind == "nearly empty":
        return dt[:2]
    if kind == "no low scores":  # the detections of most images are below the threshold
        return dt[dt.score > np.quantile(dt.score, 0.98)]
    if kind == "empty":
        return dt[:0]
    if kind == "classes in two parts":  # each image comes twice, with other classes
        return dt[np.argsort(dt.category % 2, kind="stable")]
    if kind == "best scores first":
        return dt[np.argsort(dt.score < np.median(dt.score), kind="stable")]
    if kind.startswith("some images"):
        full = np.bincount(gt.image, minlength=len(gt.images)) > 0
        return dt[full[np.searchsorted(gt.images.ids, dt.image_ids)][dt.image]]
    return dt
