"""The paper's calibration table, for any detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lvdet.calibration.calibration_table import Block, CalibrationTable
from lvdet.calibration.fitting import HIERARCHICAL, Recipe
from lvdet.calibration.folds import FOLDS, require_folds
from lvdet.calibration.labelled_scores import (
    IOU_THRESHOLD,
    Labelling,
    load_best,
    load_samples,
    require_same_classes,
)
from lvdet.calibration.methods import PAPER
from lvdet.calibration.trials import CrossFitted, Judge, Trained, Trial
from lvdet.errors import InputError
from lvdet.evaluation.input_warnings import input_warnings, reading_warnings
from lvdet.evaluation.load_pair import Annotations, ResultSource
from lvdet.evaluation.protocols import FIXED_PER_CLASS
from lvdet.files.progress import Progress, track
from lvdet.limits.budgets import PerClass

#: The paper's methods, and the one for classes with few detections.
SHOWN = (*PAPER, HIERARCHICAL)


def calibrate(
    gt: Annotations,
    detections: ResultSource,
    *,
    train: tuple[Annotations, ResultSource] | None = None,
    methods: Sequence[str] = SHOWN,
    grouping: str = "class",
    missing: str | None = None,
    folds: int | None = None,
    oracle: bool = True,
    iou: str | None = None,
    iou_threshold: float = IOU_THRESHOLD,
    dets_per_class: int = FIXED_PER_CLASS,
    progress: Progress | None = None,
) -> CalibrationTable:
    """AP-Pool, overall and by frequency group, without calibration and with each method.

    train: annotations and results of the training set; methods are fitted on it, as in the paper.
    folds: number of cross-validation folds over these images; 5 by default if there is no training
        set.
    oracle: also fit on these images themselves: an upper bound, not an estimate.
    grouping, missing: as for `Calibrator`; they do not apply to "hierarchical".
    dets_per_class: how many detections of each class are calibrated and evaluated: the best by the
        detector's own score.
    """
    recipes = {name: _recipe(name, grouping, missing) for name in dict.fromkeys(methods)}
    if not recipes:
        raise InputError("no calibration methods to compare")
    labelling = Labelling(iou, iou_threshold, dets_per_class)
    if folds is None and train is None:
        folds = FOLDS
    pair = load_best(gt, detections, labelling, progress)
    if folds is not None:
        require_folds(folds, len(pair.gt.images))
    judge = Judge(pair, iou_threshold)
    budget = [PerClass(dets_per_class)]
    warnings = input_warnings(pair, {"fixed": budget, "pool": budget}, judge.every)
    sources: list[tuple[str, str, Trial]] = []
    if train is not None:
        trained, learned = load_samples(*train, replace(labelling, iou=pair.iou), progress)
        require_same_classes(learned, pair.gt.categories)
        warnings += reading_warnings(trained)
        title = f"fitted on {trained.gt.source} and {learned.source}"
        sources.append(("train", title, Trained(judge, learned)))
    if folds is not None:
        title = f"{folds}-fold cross-validation over images"
        sources.append(("folds", title, CrossFitted(judge, folds)))
    if oracle:
        title = "fitted on the evaluated images (oracle)"
        sources.append(("oracle", title, Trained(judge, judge.samples)))
    blocks = []
    ranking = pair.results.ranking
    for name, title, source in sources:
        rows = {}
        for method, recipe in recipes.items():
            with track(progress, f"fitting {method}", source.unit) as update:
                score = source.scores(recipe, ranking, update)
            rows[method] = source.evaluate(pair.with_scores(score))
        blocks.append(Block(name, title, source.uncalibrated, rows))
    return CalibrationTable(
        judge.uncalibrated,
        blocks,
        str(PerClass(dets_per_class)),
        pair.facts(),
        warnings,
    )


def _recipe(method: str, grouping: str, missing: str | None) -> Recipe:
    """The recipe of a method; grouping and missing do not apply to methods that have their own."""
    if method == HIERARCHICAL:
        return Recipe.of(method)
    return Recipe.of(method, grouping, missing)
