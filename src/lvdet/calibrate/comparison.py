"""The paper's calibration table, on any detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate.comparison_result import Block, Calibrated, CalibrationTable
from lvdet.calibrate.fitting import HIERARCHICAL, Recipe, fit_classes
from lvdet.calibrate.folds import cross_scores, divided, require_folds
from lvdet.calibrate.maps import Floats
from lvdet.calibrate.methods import PAPER
from lvdet.calibrate.reliability import reliability
from lvdet.calibrate.samples import (
    IOU_THRESHOLD,
    Samples,
    load_best,
    load_samples,
    require_iou_threshold,
    samples_of,
)
from lvdet.errors import InputError
from lvdet.limit.budgets import PerClass
from lvdet.match.match import IOU_THRESHOLDS
from lvdet.metrics.inputs import Annotations, Pair, ResultSource, Watch, watched
from lvdet.metrics.protocols import FIXED_PER_CLASS
from lvdet.metrics.scores import Scores
from lvdet.metrics.warnings import input_warnings, reading_warnings
from lvdet.read.files import Progress
from lvdet.tables.categories import Categories
from lvdet.tables.matches import Matches
from lvdet.tables.problems import category_rows, image_rows, rows_of

#: The paper's methods, and the one for classes with few detections.
SHOWN = (*PAPER, HIERARCHICAL)
#: Parts into which images are divided where there is no training set.
FOLDS = 5


def compare_calibration(
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
    threads: int | None = None,
    watch: Watch | None = None,
) -> CalibrationTable:
    """AP-Pool by rare, common and frequent without calibration and with each method.

    train: annotations and results of the training set, on which methods are fitted as in the
        paper.
    folds: fit on parts of these images and apply to the others, so many parts; where there is no
        training set, 5 by default.
    oracle: also fit on these very images: what could be reached, not what will be.
    grouping, missing: as for `Calibrator`; "hierarchical" has its own answers.
    dets_per_class: the detections of each class that are calibrated and evaluated, its best by
        the detector's own score.
    """
    recipes = {name: _recipe(name, grouping, missing) for name in dict.fromkeys(methods)}
    if not recipes:
        raise InputError("there is no method to compare")
    require_iou_threshold(iou_threshold)
    if folds is None and train is None:
        folds = FOLDS
    pair = load_best(gt, detections, dets_per_class, iou=iou, threads=threads, watch=watch)
    if folds is not None:
        require_folds(folds, len(pair.gt.images))
    judge = _Judge(pair, iou_threshold, threads)
    warnings = input_warnings(
        pair.gt,
        pair.results,
        exact_lvis=False,
        budgets={"fixed": [PerClass(dets_per_class)], "pool": [PerClass(dets_per_class)]},
        classes=judge.every,
    )
    sources: list[tuple[str, str, _Source]] = []
    if train is not None:
        trained, learned = load_samples(
            *train,
            iou=pair.iou,
            iou_threshold=iou_threshold,
            dets_per_class=dets_per_class,
            threads=threads,
            watch=watch,
        )
        _require_same_classes(learned, pair.gt.categories)
        warnings += reading_warnings(trained.gt, trained.results, exact_lvis=False)
        title = f"fitted on {trained.gt.source} and {learned.source}"
        sources.append(("train", title, _Fitted(judge, learned)))
    if folds is not None:
        title = f"{folds}-fold cross-validation over images"
        sources.append(("folds", title, _CrossFitted(judge, folds)))
    if oracle:
        title = "fitted on the same images (an oracle)"
        sources.append(("oracle", title, _Fitted(judge, judge.samples)))
    blocks = []
    for name, title, source in sources:
        rows = {}
        for method, recipe in recipes.items():
            with watched(watch, f"fitting {method}", source.unit) as progress:
                rows[method] = source.row(recipe, progress)
        blocks.append(Block(name, title, source.uncalibrated, rows))
    return CalibrationTable(
        judge.uncalibrated,
        blocks,
        str(PerClass(dets_per_class)),
        pair.facts(classes=len(judge.every), exact_lvis=False),
        warnings,
    )


def _recipe(method: str, grouping: str, missing: str | None) -> Recipe:
    """The recipe of a method; what is asked for does not touch one that has its own answers."""
    if method == HIERARCHICAL:
        return Recipe.of(method)
    return Recipe.of(method, grouping, missing)


def _require_same_classes(learned: Samples, wanted: Categories) -> None:
    """Refuses a training set of other classes, by id or by name."""
    known = learned.categories
    for row, place in enumerate(rows_of(known.ids, wanted.ids).tolist()):
        if place < 0:
            raise InputError(
                f"{learned.source}: its annotations have no class of id {wanted.ids[row]} "
                f"({wanted.names[row]!r}), which is to be evaluated"
            )
        if known.names[place] != wanted.names[row]:
            raise InputError(
                f"{learned.source}: its annotations call the class of id {wanted.ids[row]} "
                f"{known.names[place]!r}, but it is to be evaluated as {wanted.names[row]!r}"
            )


class _Judge:
    """What new scores of the detections of a pair are worth."""

    def __init__(self, pair: Pair, iou_threshold: float, threads: int | None) -> None:
        self.pair, self.iou_threshold, self.threads = pair, iou_threshold, threads
        self.score = pair.results.ranking.score
        self.every = np.arange(len(pair.gt.categories))
        self._matches = Scores(pair, threads=threads).matches
        labels = self._matches
        if not np.isclose(IOU_THRESHOLDS, iou_threshold, rtol=0, atol=1e-9).any():
            labels = pair.matched(thresholds=[iou_threshold], threads=threads)
        self.samples = samples_of(pair, labels, iou_threshold)

    @cached_property
    def uncalibrated(self) -> Calibrated:
        """What the detector's own scores are worth."""
        return self.row(self.score)

    def row(self, score: Floats) -> Calibrated:
        """What the scores ([N]) are worth."""
        reordered = _reordered(self._matches, self.score, score)
        scores = Scores(
            replace(self.pair, results=self.pair.results.with_scores(score)),
            matches=self._matches if not len(reordered) else None,
            threads=self.threads,
        )
        return Calibrated(
            scores.pooled([], self.every),
            scores.average([], self.every),
            frozenset(reordered.tolist()),
            reliability(self.rescored(score), by_class=False),
        )

    def rescored(self, score: Floats) -> Samples:
        """The samples with new scores, no longer in their order."""
        return replace(self.samples, score=score[self.samples.detection])


class _Fitted:
    """Methods fitted on samples of any images."""

    unit = "classes"

    def __init__(self, judge: _Judge, samples: Samples) -> None:
        self._judge, self._samples = judge, samples
        self.uncalibrated = judge.uncalibrated

    def row(self, recipe: Recipe, progress: Progress | None) -> Calibrated:
        """What the method's scores are worth."""
        judge = self._judge
        ranking, threads = judge.pair.results.ranking, judge.threads
        category = rows_of(self._samples.categories.ids, ranking.category_ids)[ranking.category]
        fitted = fit_classes(self._samples, recipe, threads=threads, progress=progress)
        return judge.row(fitted.new_scores(category, judge.score, threads=threads))


class _CrossFitted:
    """Methods fitted on parts of the images and judged on the others; numbers are means over the
    parts, since scores of one class by several fits have no common order."""

    unit = "parts"

    def __init__(self, judge: _Judge, folds: int) -> None:
        self._judge = judge
        gt, ranking = judge.pair.gt, judge.pair.results.ranking
        part = divided(len(gt.images), folds)
        self._fold = part[image_rows(gt, ranking)[ranking.image]]
        self._category = category_rows(gt, ranking)[ranking.category]
        self._parts = []
        for number in range(folds):
            pair = replace(
                judge.pair,
                gt=gt.where(part[gt.image] == number),
                results=judge.pair.results.where(self._fold == number),
            )
            self._parts.append(_Judge(pair, judge.iou_threshold, judge.threads))
        self.uncalibrated = self._mean([one.uncalibrated for one in self._parts], judge.score)

    def row(self, recipe: Recipe, progress: Progress | None) -> Calibrated:
        """What the method's scores are worth."""
        judge = self._judge
        score = cross_scores(
            judge.samples,
            recipe,
            self._fold,
            self._category,
            judge.score,
            threads=judge.threads,
            progress=progress,
        )
        rows = [one.row(score[self._fold == number]) for number, one in enumerate(self._parts)]
        return self._mean(rows, score)

    def _mean(self, rows: Sequence[Calibrated], score: Floats) -> Calibrated:
        return Calibrated(
            _means([row.pool for row in rows]),
            _means([row.fixed for row in rows]),
            frozenset().union(*(row.reordered for row in rows)),
            reliability(self._judge.rescored(score), by_class=False),
        )


_Source: TypeAlias = _Fitted | _CrossFitted


def _means(values: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each metric over the parts that define it."""
    means = {}
    for name in values[0]:
        known = [value[name] for value in values if not np.isnan(value[name])]
        means[name] = float(np.mean(known)) if known else float("nan")
    return means


def _reordered(matches: Matches, before: Floats, after: Floats) -> NDArray[np.int32]:
    """The classes that have another order; where none has, the matches stay as they are."""
    old, new, category = before[matches.detection], after[matches.detection], matches.category
    changed = np.sign(np.diff(old)) != np.sign(np.diff(new))
    return np.unique(category[1:][changed & (category[1:] == category[:-1])])
