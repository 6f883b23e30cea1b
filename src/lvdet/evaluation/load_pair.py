"""Loads the tables of an evaluation."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import require_known_class
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.pair_source import PairSource
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.detection_files import (
    may_have_masks,
    named_files,
    prepare,
    read_detections,
    read_results,
)
from lvdet.files.fingerprint import fingerprints
from lvdet.files.progress import Progress
from lvdet.files.records import have_masks
from lvdet.files.remote_path import input_path
from lvdet.limits.needs import Need, caps_of, everything
from lvdet.matching.match_options import DEFAULT, MatchOptions
from lvdet.plausibility.repeated_images import without_repeats
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results

FilePath: TypeAlias = str | os.PathLike[str]
#: The accepted types of annotations and of detections.
Annotations: TypeAlias = GroundTruth | FilePath
DetectionSource: TypeAlias = Detections | FilePath | list[FilePath]
#: The same, or results already read, so that several evaluations can share one file; or what makes
#: a pair itself.
ResultSource: TypeAlias = DetectionSource | Results | PairSource


def load_pair(
    gt: Annotations,
    detections: ResultSource,
    needs: Callable[[GroundTruth], Sequence[Need]] | None,
    options: MatchOptions = DEFAULT,
    *,
    drop_duplicates: bool = False,
    progress: Progress | None = None,
) -> Pair:
    """The tables of an evaluation, read from files if paths are given.

    Annotations are read first. From results files, only the rows that the needs can use stay in
    memory; with needs=None the whole table does, masks included even if boxes are compared.
    `Results` are used unchanged: they were read for needs no smaller than these. Results that share
    no class with the annotations are an error, except with exact_lvis. drop_duplicates leaves out
    exact repeats of an image's rows; nothing else is then left out while reading.
    """
    if not isinstance(gt, GroundTruth | str | os.PathLike):
        raise InputError(f"annotations are of type {type(gt).__name__}, expected a table or a path")
    if not isinstance(gt, GroundTruth):
        gt = input_path(gt)
    if isinstance(detections, PairSource):
        if needs is None or drop_duplicates:
            raise InputError(f"{detections.name} is in shards, but this needs all rows together")
        return detections.pair(gt, needs, options, progress)
    iou = options.iou
    files = named_files(detections)
    results: Results | None = None
    if isinstance(detections, Results):
        results = detections
    elif isinstance(detections, Detections):
        results = Results.of(detections)
    masks = iou != "bbox"
    if iou is None and (not isinstance(gt, Path) or os.path.isfile(gt)):
        # Masks of annotations take time to read; but a source that is not a file can be read only
        # once.
        if files is not None:
            masks = may_have_masks(files)
        else:
            masks = have_masks(detections) if results is None else _has_masks(results)

    truth = gt
    if files is not None and not isinstance(truth, GroundTruth):
        prepare(files)
    if not isinstance(truth, GroundTruth):
        truth = read_ground_truth(truth, masks=masks, progress=progress)
    if results is None and (files is None or needs is None):
        source: Any = detections if files is None else files
        results = Results.of(read_detections(source, images=truth, progress=progress))
    elif files is not None and needs is not None:
        wanted = needs(truth)
        caps = caps_of(
            everything(truth) if drop_duplicates else wanted, truth, unknown=options.exact_lvis
        )
        every_box = any(need.boxes for need in wanted)
        results = read_results(
            files, truth, caps, masks=iou != "bbox", every_box=every_box, progress=progress
        )
    assert results is not None  # passed in, or read above
    dropped = None
    if drop_duplicates:
        results, dropped = without_repeats(results)
    if not options.exact_lvis:
        require_known_class(truth, results)
    has_masks = _has_masks(results)
    if iou is None and has_masks and not masks and not isinstance(gt, GroundTruth):
        truth = read_ground_truth(
            gt, progress=progress
        )  # the first rows had no masks, but others have
    with_masks = has_masks and truth.masks is not None
    read: list[FilePath] = [] if isinstance(gt, GroundTruth) else [gt]
    read += [] if files is None else files.paths
    options = options.resolved(masks=with_masks)
    return Pair(truth, results, options, dropped=dropped, files=fingerprints(read))


def _has_masks(results: Results | None) -> bool:
    return results is not None and results.detections.masks is not None
