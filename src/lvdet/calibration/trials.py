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
from lvdet.files.progress import Update
from lvdet.tables.categories import Categories
from lvdet.tables.problems import category_rows, image_rows, rows_of
from lvdet.tables.results import Ranking


class Judge:
    """What new scores of the detections of a pair are worth, over all images or parts of them.

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
        """Frees the samples; they are made again where they are asked for."""
        self.__dict__.pop("samples", None)

    @cached_property
    def uncalibrated(self) -> Calibrated:
        """What the detector's own scores are worth."""
        return self.worth(self.pair)

    def worth(self, after: Pair, part: NDArray[np.int32] | None = None) -> Calibrated:
        """What the pair's new scores are worth."""
        score = after.results.ranking.score
        parts = _masks(part)
        return Calibrated(
            self.pooled(after, part),
            _means([after.average([], self.every, images=images) for images in parts]),
            frozenset().union(*(self._reordered(score, images) for images in parts)),
            reliability(self.rescored(score), by_class=False),
        )

    def pooled(self, after: Pair, part: NDArray[np.int32] | None = None) -> dict[str, float]:
        """AP-Pool of the pair's new scores."""
        parts = _masks(part)
        return _means([after.pooled([], self.every, images=images) for images in parts])

    def rescored(self, score: Floats) -> Samples:
        """The samples with new scores, no longer in their order."""
        return replace(self.samples, score=score[self.samples.detection])

    def _reordered(self, score: Floats, images: NDArray[np.bool_] | None) -> list[int]:
        """The classes that scores put in another order."""
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
    """A way to new scores, and what they are worth.

    unit: what its progress counts
    """

    unit: str

    @property
    def uncalibrated(self) -> Calibrated:
        """What the detector's own scores are worth, measured in the same way."""
        ...

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """New scores of all detections of a ranking, by a method."""
        ...

    def worth(self, after: Pair) -> Calibrated:
        """What the judged pair is worth with new scores."""
        ...

    def pooled(self, after: Pair) -> dict[str, float]:
        """Its AP-Pool alone."""
        ...


class Trained:
    """Methods fitted on samples of any images."""

    unit = "classes"

    def __init__(self, judge: Judge, samples: Samples) -> None:
        self._judge, self._samples = judge, samples

    @property
    def uncalibrated(self) -> Calibrated:
        """What the detector's own scores are worth."""
        return self._judge.uncalibrated

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """New scores of all detections of a ranking, by a method."""
        fitted = fit_classes(self._samples, recipe, update=update)
        return fitted_scores(fitted, self._samples.categories, ranking)

    def worth(self, after: Pair) -> Calibrated:
        """What the judged pair is worth with new scores."""
        return self._judge.worth(after)

    def pooled(self, after: Pair) -> dict[str, float]:
        """Its AP-Pool alone."""
        return self._judge.pooled(after)


class CrossFitted:
    """Methods fitted on parts of the images and judged on the others; numbers are means over the
    parts, since scores of one class by several fits have no common order."""

    unit = "parts"

    def __init__(self, judge: Judge, folds: int) -> None:
        self._judge = judge
        self._part = divided(len(judge.pair.gt.images), folds)

    @cached_property
    def uncalibrated(self) -> Calibrated:
        """What the detector's own scores are worth, as a mean over the parts too."""
        return self.worth(self._judge.pair)

    def scores(self, recipe: Recipe, ranking: Ranking, update: Update | None = None) -> Floats:
        """New scores of all detections of a ranking, by a method."""
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

    def worth(self, after: Pair) -> Calibrated:
        """What the judged pair is worth with new scores."""
        return self._judge.worth(after, self._part)

    def pooled(self, after: Pair) -> dict[str, float]:
        """Its AP-Pool alone."""
        return self._judge.pooled(after, self._part)

    def _folds_of(self, ranking: Ranking) -> NDArray[np.int32]:
        return self._part[image_rows(self._judge.pair.gt, ranking)[ranking.image]]


def fitted_scores(fitted: Fitted, categories: Categories, ranking: Ranking) -> Floats:
    """[N] new scores of a ranking, by a fit for these classes."""
    category = rows_of(categories.ids, ranking.category_ids)[ranking.category]
    return fitted.new_scores(category, ranking.score)


def _masks(part: NDArray[np.int32] | None) -> Sequence[NDArray[np.bool_] | None]:
    """[I] the images of each part; None for all of them in one."""
    return [None] if part is None else [part == one for one in range(int(part.max()) + 1)]


def _means(values: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each metric over the parts that define it."""
    means = {}
    for name in values[0]:
        known = [value[name] for value in values if not np.isnan(value[name])]
        means[name] = float(np.mean(known)) if known else float("nan")
    return means
