"""Evaluates calibrated scores, fitted on other data or by cross-validation."""

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
from lvdet.files.progress import Update
from lvdet.tables.categories import Categories
from lvdet.tables.problems import category_rows, image_rows, rows_of
from lvdet.tables.results import Ranking


class Judge:
    """Evaluates new scores for the detections of a pair, over all images or folds.

    `part` ([I] the number of each image's part, None for one of all) is where AP is a mean over
    parts.
    """

    def __init__(self, pair: Pair, iou_threshold: float) -> None:
        self.pair, self.every = pair, pair.every_class
        self._iou_threshold = iou_threshold

    @cached_property
    def samples(self) -> Samples:
        """The samples of the pair."""
        return samples_of(self.pair, self._iou_threshold)

    def forget(self) -> None:
        """Frees the samples; they are recomputed when needed."""
        self.__dict__.pop("samples", None)

    @cached_property
    def uncalibrated(self) -> Calibrated:
        """Evaluates the detector's own scores."""
        return self.evaluate(self.pair)

    def evaluate(self, after: Pair, part: NDArray[np.int32] | None = None) -> Calibrated:
        """Evaluates new scores of the pair."""
        score = after.results.ranking.score
        parts = _masks(part)
        return Calibrated(
            self.pooled(after, part),
            _means([after.average([], self.every, images=images) for images in parts]),
            frozenset().union(*(self._reordered(score, images) for images in parts)),
            reliability(self.rescored(score), by_class=False),
        )

    def pooled(self, after: Pair, part: NDArray[np.int32] | None = None) -> dict[str, float]:
        """AP-Pool with new scores."""
        parts = _masks(part)
        return _means([after.pooled([], self.every, images=images) for images in parts])

    def rescored(self, score: Floats) -> Samples:
        """The samples with new scores, in their previous order."""
        return replace(self.samples, score=score[self.samples.detection])

    def _reordered(self, score: Floats, images: NDArray[np.bool_] | None) -> list[int]:
        """The classes whose order the scores change."""
        matches, ranking = self.pair.matches, self.pair.results.ranking
        rows, category = matches.detection, matches.category
        if images is not None:
            here = self.pair.rows_in(images)
            rows, category = rows[here], category[here]
        before, after = np.diff(ranking.score[rows]), np.diff(score[rows])
        changed = (np.sign(before) != np.sign(after)) & (np.diff(category) == 0)
        found: list[int] = np.unique(category[1:][changed]).tolist()
        return found


class Trial(Protocol):
    """A way to obtain new scores, and how to evaluate them.

    unit: the unit of its progress
    """

    unit: str

    @property
    def uncalibrated(self) -> Calibrated:
        """Evaluates the detector's own scores in the same way."""
        ...

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """Scores of all detections of a ranking, by a method."""
        ...

    def evaluate(self, after: Pair) -> Calibrated:
        """Evaluates the pair with new scores."""
        ...

    def pooled(self, after: Pair) -> dict[str, float]:
        """AP-Pool alone."""
        ...


class Trained:
    """Methods fitted on given samples."""

    unit = "classes"

    def __init__(self, judge: Judge, samples: Samples) -> None:
        self._judge, self._samples = judge, samples

    @property
    def uncalibrated(self) -> Calibrated:
        """Evaluates the detector's own scores."""
        return self._judge.uncalibrated

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """Scores of all detections of a ranking, by a method."""
        fitted = fit_classes(self._samples, recipe, update=update)
        return fitted_scores(fitted, self._samples.categories, ranking)

    def evaluate(self, after: Pair) -> Calibrated:
        """Evaluates the pair with new scores."""
        return self._judge.evaluate(after)

    def pooled(self, after: Pair) -> dict[str, float]:
        """AP-Pool alone."""
        return self._judge.pooled(after)


class CrossFitted:
    """Methods fitted by cross-validation. Metrics are means over the folds, because scores from
    different fits of a class are not comparable."""

    unit = "parts"

    def __init__(self, judge: Judge, folds: int) -> None:
        self._judge = judge
        self._part = divided(len(judge.pair.gt.images), folds)

    @cached_property
    def uncalibrated(self) -> Calibrated:
        """Evaluates the detector's own scores, also as a mean over the folds."""
        return self.evaluate(self._judge.pair)

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """Scores of all detections of a ranking, by a method."""
        judge = self._judge
        samples = judge.samples
        return cross_scores(
            samples,
            recipe,
            self._folds_of(judge.pair.results.ranking)[samples.detection],
            self._folds_of(ranking),
            category_rows(judge.pair.gt, ranking)[ranking.category],
            ranking.score,
            update=update,
        )

    def evaluate(self, after: Pair) -> Calibrated:
        """Evaluates the pair with new scores."""
        return self._judge.evaluate(after, self._part)

    def pooled(self, after: Pair) -> dict[str, float]:
        """AP-Pool alone."""
        return self._judge.pooled(after, self._part)

    def _folds_of(self, ranking: Ranking) -> NDArray[np.int32]:
        return self._part[image_rows(self._judge.pair.gt, ranking)[ranking.image]]


def fitted_scores(fitted: Fitted, categories: Categories, ranking: Ranking) -> Floats:
    """[N] calibrated scores of a ranking, from a fit for these classes."""
    category = rows_of(categories.ids, ranking.category_ids)[ranking.category]
    return fitted.new_scores(category, ranking.score)


def _masks(part: NDArray[np.int32] | None) -> Sequence[NDArray[np.bool_] | None]:
    """[I] the images of each fold; None if there is only one."""
    return [None] if part is None else [part == one for one in range(int(part.max()) + 1)]


def _means(values: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each metric over the folds for which it is defined."""
    means = {}
    for name in values[0]:
        known = [value[name] for value in values if not np.isnan(value[name])]
        means[name] = float(np.mean(known)) if known else float("nan")
    return means
