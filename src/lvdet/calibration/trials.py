"""What calibrated scores are worth: fitted elsewhere, or in turn on parts of the same images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.calibration_table import Calibrated
from lvdet.calibration.fitting import Fitted, Recipe, fit_classes
from lvdet.calibration.folds import cross_scores, divided
from lvdet.calibration.labelled_scores import Samples, samples_of
from lvdet.calibration.maps import Floats
from lvdet.calibration.reliability import reliability
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.scores import Scores
from lvdet.files.progress import Update
from lvdet.matching.match_options import IOU_THRESHOLDS
from lvdet.tables.categories import Categories
from lvdet.tables.matches import Matches
from lvdet.tables.problems import category_rows, image_rows, rows_of
from lvdet.tables.results import Ranking


class Judge:
    """What new scores of the detections of a pair are worth."""

    def __init__(self, pair: Pair, iou_threshold: float) -> None:
        self.pair, self.iou_threshold = pair, iou_threshold
        self.score = pair.results.ranking.score
        self.every = np.arange(len(pair.gt.categories))
        self._matches = Scores(pair).matches
        labels = self._matches
        if not np.isclose(IOU_THRESHOLDS, iou_threshold, rtol=0, atol=1e-9).any():
            labels = pair.matched(thresholds=[iou_threshold])
        self.samples = samples_of(pair, labels, iou_threshold)

    @cached_property
    def uncalibrated(self) -> Calibrated:
        """What the detector's own scores are worth."""
        return self.worth(self.score)

    def worth(self, score: Floats) -> Calibrated:
        """What the scores ([N]) are worth."""
        reordered = _reordered(self._matches, self.score, score)
        scores = Scores(
            replace(self.pair, results=self.pair.results.with_scores(score)),
            matches=self._matches if not len(reordered) else None,
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


class Trial(Protocol):
    """A way to new scores, and what they are worth.

    unit: what its progress counts
    uncalibrated: what the detector's own scores are worth, measured in the same way
    """

    unit: str
    uncalibrated: Calibrated

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """New scores of all detections of a ranking, by a method."""
        ...

    def worth(self, score: Floats) -> Calibrated:
        """What new scores of the judged detections are worth."""
        ...


class Trained:
    """Methods fitted on samples of any images."""

    unit = "classes"

    def __init__(self, judge: Judge, samples: Samples) -> None:
        self._judge, self._samples = judge, samples
        self.uncalibrated = judge.uncalibrated
        self.worth = judge.worth

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """New scores of all detections of a ranking, by a method."""
        fitted = fit_classes(self._samples, recipe, update=update)
        return fitted_scores(fitted, self._samples.categories, ranking)


class CrossFitted:
    """Methods fitted on parts of the images and judged on the others; numbers are means over the
    parts, since scores of one class by several fits have no common order."""

    unit = "parts"

    def __init__(self, judge: Judge, folds: int) -> None:
        self._judge = judge
        gt, results = judge.pair.gt, judge.pair.results
        self._part = divided(len(gt.images), folds)
        self._fold = self._folds_of(results.ranking)
        self._parts = []
        for number in range(folds):
            pair = replace(
                judge.pair,
                gt=gt.where(self._part[gt.image] == number),
                results=results.where(self._fold == number),
            )
            self._parts.append(Judge(pair, judge.iou_threshold))
        self.uncalibrated = self._mean([one.uncalibrated for one in self._parts], judge.score)

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """New scores of all detections of a ranking, by a method."""
        judge = self._judge
        samples = judge.samples
        return cross_scores(
            samples,
            recipe,
            self._fold[samples.detection],
            self._folds_of(ranking),
            category_rows(judge.pair.gt, ranking)[ranking.category],
            ranking.score,
            update=update,
        )

    def worth(self, score: Floats) -> Calibrated:
        """What new scores of the judged detections are worth."""
        rows = [one.worth(score[self._fold == number]) for number, one in enumerate(self._parts)]
        return self._mean(rows, score)

    def _folds_of(self, ranking: Ranking) -> NDArray[np.int32]:
        return self._part[image_rows(self._judge.pair.gt, ranking)[ranking.image]]

    def _mean(self, rows: Sequence[Calibrated], score: Floats) -> Calibrated:
        return Calibrated(
            _means([row.pool for row in rows]),
            _means([row.fixed for row in rows]),
            frozenset().union(*(row.reordered for row in rows)),
            reliability(self._judge.rescored(score), by_class=False),
        )


def fitted_scores(fitted: Fitted, categories: Categories, ranking: Ranking) -> Floats:
    """[N] new scores of a ranking, by a fit for these classes."""
    category = rows_of(categories.ids, ranking.category_ids)[ranking.category]
    return fitted.new_scores(category, ranking.score)


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
