"""The pair that is evaluated: from tables or from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import counted, require_known_class
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.detection_files import (
    may_have_masks,
    named_files,
    read_detections,
    read_results,
)
from lvdet.files.progress import Progress, track
from lvdet.limits.budgets import Budget, apply
from lvdet.limits.needs import Need, caps_of
from lvdet.matching.match import IOU_KINDS, match
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.matches import Matches
from lvdet.tables.results import Results

FilePath: TypeAlias = str | os.PathLike[str]
#: What annotations may be given as, and detections.
Annotations: TypeAlias = GroundTruth | FilePath
DetectionSource: TypeAlias = Detections | FilePath | list[FilePath]
#: The same, or what was read already, for several questions about one file.
ResultSource: TypeAlias = DetectionSource | Results


@dataclass(frozen=True, eq=False)
class Pair:
    """Annotations and results, and the overlap they are compared by."""

    gt: GroundTruth
    results: Results
    iou: str

    def matched(
        self,
        *,
        thresholds: Sequence[float] | None = None,
        exact_lvis: bool = False,
    ) -> Matches:
        """The one match, whose rows are rows of the ranking."""
        matches = match(
            self.gt,
            self.results.detections,
            iou=self.iou,
            thresholds=thresholds,
            exact_lvis=exact_lvis,
        )
        return self.results.placed(matches)

    def kept(
        self,
        budgets: Sequence[Budget],
        *,
        classes: NDArray[np.int64] | None = None,
    ) -> NDArray[np.bool_] | None:
        """[N] which rows of the ranking budgets leave of classes (all that the annotations have,
        where None are given); None for all."""
        ranking = self.results.ranking
        selected = np.arange(len(self.gt.categories)) if classes is None else classes
        among = counted(self.gt, ranking, selected, exact_lvis=False)
        return apply(budgets, ranking, among=among)

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


def headline(facts: Mapping[str, Any]) -> str:
    """What was evaluated, in a line."""
    return (
        f"{facts['iou']}: {facts['detection_count']:,} detections on {facts['images']:,} images, "
        f"{facts['classes']:,} classes"
    )


def load_pair(
    gt: Annotations,
    detections: ResultSource,
    needs: Callable[[GroundTruth], Sequence[Need]] | None,
    *,
    iou: str | None = None,
    exact_lvis: bool = False,
    progress: Progress | None = None,
) -> Pair:
    """The tables of an evaluation, read where paths are given.

    Annotations come first. Of results files only what the needs can use is kept in memory; where
    needs are None, it is the whole table, masks included even where boxes are compared. `Results`
    are taken as they are: they were read for needs no smaller than these. Results without a class
    that the annotations have are refused, but for `exact_lvis`.
    """
    if not isinstance(gt, GroundTruth | str | os.PathLike):
        raise InputError(f"annotations are a {type(gt).__name__}, expected a table or a path")
    if iou is not None and iou not in IOU_KINDS:
        raise InputError(f"iou is {iou!r}, expected one of {', '.join(IOU_KINDS)}")
    files = named_files(detections)
    results: Results | None = None
    if isinstance(detections, Results):
        results = detections
    elif files is None:
        results = Results.of(read_detections(detections))
    masks = iou != "bbox"
    if iou is None and (isinstance(gt, GroundTruth) or Path(gt).is_file()):
        # Masks of annotations take time to read; but what is no file can be read only once.
        masks = _has_masks(results) if files is None else may_have_masks(files)

    def read_truth(path: FilePath, with_masks: bool) -> GroundTruth:
        with track(progress, "reading annotations", "bytes") as update:
            return read_ground_truth(path, masks=with_masks, update=update)

    truth = gt if isinstance(gt, GroundTruth) else read_truth(gt, masks)
    if files is not None:
        with track(progress, "reading results", "bytes") as update:
            if needs is None:
                table = read_detections(files, update=update)
                results = Results.of(table)
            else:
                caps = caps_of(needs(truth), truth, unknown=exact_lvis)
                results = read_results(files, truth, caps, masks=iou != "bbox", update=update)
    assert results is not None  # given, or read
    if not exact_lvis:
        require_known_class(truth, results)
    has_masks = _has_masks(results)
    if iou is None and has_masks and not masks and not isinstance(gt, GroundTruth):
        truth = read_truth(gt, True)  # the first rows had no masks, but others have
    if iou is None:
        iou = "segm" if has_masks and truth.masks is not None else "bbox"
    return Pair(truth, results, iou)


def _has_masks(results: Results | None) -> bool:
    return results is not None and results.detections.masks is not None
