"""The pair that is evaluated: from tables or from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.limit.budgets import Budget
from lvdet.read.annotations import read_ground_truth
from lvdet.read.detections import read_detections
from lvdet.read.files import Progress
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results

FilePath: TypeAlias = str | os.PathLike[str]
#: What annotations may be given as, and detections.
Annotations: TypeAlias = GroundTruth | FilePath
DetectionSource: TypeAlias = Detections | FilePath | list[FilePath]
#: Called with what is being read; what it gives is entered while that lasts.
Watch: TypeAlias = Callable[[str], AbstractContextManager[Progress | None]]


@dataclass(frozen=True, eq=False)
class Need:
    """Detections that must be there: those that a budget leaves of some classes (rows of the
    annotations' categories); all of them where the budget is None."""

    budget: Budget | None
    classes: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pair:
    """Annotations and results, and the overlap they are compared by."""

    gt: GroundTruth
    results: Results
    iou: str

    def facts(self, *, classes: int, exact_lvis: bool) -> dict[str, Any]:
        """What was evaluated, for the output; `classes` is how many of them."""
        return {
            "ground_truth": self.gt.source,
            "detections": self.results.source,
            "format": "lvis" if self.gt.federated else "coco",
            "iou": self.iou,
            "images": len(self.gt.images),
            "classes": classes,
            "annotations": len(self.gt),
            "detection_count": self.results.total,
            "exact_lvis": exact_lvis,
        }


def load_pair(
    gt: Annotations,
    detections: DetectionSource,
    needs: Callable[[GroundTruth], Sequence[Need]],
    *,
    iou: str | None = None,
    exact_lvis: bool = False,
    threads: int | None = None,
    watch: Watch | None = None,
) -> Pair:
    """The tables of an evaluation, read where paths are given.

    Of a file, only what the needs can use is kept in memory.
    """
    watch = watch or (lambda _: nullcontext())
    if not isinstance(gt, GroundTruth | str | os.PathLike):
        raise InputError(f"annotations are a {type(gt).__name__}, expected a table or a path")
    if not isinstance(detections, Detections):
        with watch("reading results") as progress:
            detections = read_detections(
                detections, masks=iou != "bbox", threads=threads, progress=progress
            )
    masks = iou != "bbox" and (iou is not None or detections.masks is not None)
    if not isinstance(gt, GroundTruth):
        with watch("reading annotations") as progress:
            gt = read_ground_truth(gt, masks=masks, threads=threads, progress=progress)
    if iou is None:
        iou = "segm" if detections.masks is not None and gt.masks is not None else "bbox"
    return Pair(gt, Results.of(detections), iou)
