"""Scores before and after calibration."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.calibrator import Calibrator
from lvdet.calibration.detection_errors import DetectionError
from lvdet.calibration.fitting import Recipe
from lvdet.calibration.folds import FOLDS
from lvdet.calibration.labelled_scores import IOU_THRESHOLD, Samples, require_chances
from lvdet.calibration.localised_errors import localised_errors
from lvdet.calibration.maps import Floats
from lvdet.calibration.reliability import BINS, ReliabilityCurve, reliability_curve
from lvdet.calibration.trials import CrossFitted, Judge, Trained, Trial, fitted_scores
from lvdet.diagnosis.diagnose import FOREGROUND
from lvdet.errors import InputError
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import FIXED_PER_CLASS, old_budget
from lvdet.files.progress import Update
from lvdet.limits.budgets import PerClass, apply, describe
from lvdet.studies.account import outcomes
from lvdet.tables.results import Ranking


class UncalibratedError(InputError):
    """Scores that cannot be calibrated; the report continues without calibration."""


@dataclass(frozen=True, eq=False)
class CalibrationSource:
    """Where calibrated scores come from: a fitted calibrator, samples of a training set, or, with
    neither, the other folds of the same images.

    method: the calibration method, if there is no calibrator
    """

    method: str
    calibrator: Calibrator | None = None
    training: Samples | None = None

    @property
    def iou_threshold(self) -> float:
        """The IoU at which a detection is correct, which calibrated scores are probabilities of."""
        if self.calibrator is not None:
            return self.calibrator.record_.origin.iou_threshold
        return IOU_THRESHOLD

    def title(self) -> str:
        """How scores were calibrated, in words."""
        if self.calibrator is not None:
            record = self.calibrator.record_
            return f"{record.recipe.method}, fitted earlier on {record.origin.detections}"
        if self.training is not None:
            return f"{self.method}, fitted on {self.training.source}"
        return (
            f"{self.method}, {FOLDS}-fold cross-validation over images (AP-Pool is the mean over "
            "the folds)"
        )


@dataclass(frozen=True, eq=False)
class CalibrationStudy:
    """Scores before and after calibration, and how good they are.

    before, after: over all detections that count ("all"), and by frequency
    pool_before, pool_after: AP, APr, APc and APf of AP-Pool
    rescored: if requested, [N] the calibrated scores of all detections of the pair, and the
        outcome of each with them, as an index into `OUTCOMES`; detections that AP-Fixed does not
        count keep their outcome
    errors_before, errors_after: ECE of the same detections, and LaECE, LaACE and D-ECE of those
        within the usual limit per image
    title: how scores were calibrated
    iou_threshold: the IoU from which a detection is correct
    """

    before: dict[str, ReliabilityCurve]
    after: dict[str, ReliabilityCurve]
    pool_before: dict[str, float]
    pool_after: dict[str, float]
    rescored: tuple[Floats, NDArray[np.int8]] | None
    errors_before: list[DetectionError]
    errors_after: list[DetectionError]
    title: str
    iou_threshold: float


def study_calibration(
    pair: Pair,
    source: CalibrationSource,
    *,
    all_scores: bool = False,
    update: Update | None = None,
) -> CalibrationStudy:
    """Measures what calibration does to a detector, over the detections that AP-Fixed counts;
    with `all_scores`, also computes the calibrated scores of the others. The pair has partners at
    `FOREGROUND`."""
    gt, ranking = pair.gt, pair.results.ranking
    try:
        require_chances(ranking.score, lambda _: ranking.source)
    except InputError as error:
        raise UncalibratedError(str(error)) from None
    judged = np.zeros(len(ranking), dtype=bool)
    judged[pair.matches.detection] = True  # what counts nowhere changes no AP
    per_class = PerClass(FIXED_PER_CLASS)
    keep = pair.kept([per_class])
    if keep is not None:
        judged &= keep
    right_at = source.iou_threshold
    judge = Judge(pair if judged.all() else pair.where(judged), right_at)
    if not judge.samples.right.any():
        raise UncalibratedError(
            f"{ranking.source}: none of its {len(judge.samples):,} counted detections is correct "
            f"at IoU {right_at:g}"
        )
    if source.calibrator is None and source.training is None and len(gt.images) < FOLDS:
        raise UncalibratedError(
            f"{gt.source} has {len(gt.images)} images, but cross-validation needs {FOLDS}"
        )
    trial = _trial(judge, source)
    limit = old_budget(gt.federated)
    limited = limit.limit < limit.most(pair.results)
    budget = describe([per_class, limit])

    def errors(scored: Pair, score: Floats | None, curve: ReliabilityCurve) -> list[DetectionError]:
        left = keep
        if score is not None and limited:
            left = apply([limit], replace(ranking, score=score), among=keep)
        left = None if left is None else left[judged]
        return [
            _ece(curve, right_at, str(per_class)),
            *localised_errors(scored, FOREGROUND, left, budget=budget),
        ]

    before_curves = _curves(judge.samples)
    errors_before = errors(judge.pair, ranking.score, before_curves["all"])
    scores: Floats | None = None
    if all_scores or limited:  # those that count nowhere take up the limit per image
        scores = _scores(trial, source, ranking, update)
        new = scores if judged.all() else scores[judged]
    else:
        new = _scores(trial, source, judge.pair.results.ranking, update)
    after_curves = _curves(judge.rescored(new))
    judge.forget()
    after = judge.pair.with_scores(new)
    errors_after = errors(after, scores, after_curves["all"])
    rescored = None
    if all_scores and scores is not None:
        outcome = outcomes(pair.matches, len(ranking))
        outcome[judged] = outcomes(after.matches, len(new))
        rescored = scores, outcome
    pool_after = trial.pooled(after)  # first: it may take another match
    del after
    return CalibrationStudy(
        before_curves,
        after_curves,
        trial.pooled(judge.pair),
        pool_after,
        rescored,
        errors_before,
        errors_after,
        source.title(),
        right_at,
    )


def _ece(curve: ReliabilityCurve, right_at: float, budget: str) -> DetectionError:
    """ECE with what it was computed under."""
    count = int(curve.count.sum())
    return DetectionError("ECE", BINS, right_at, budget, None, "", count, curve.mean_gap, {})


def _trial(judge: Judge, source: CalibrationSource) -> Trial:
    if source.calibrator is None and source.training is None:
        return CrossFitted(judge, FOLDS)
    return Trained(judge, judge.samples if source.training is None else source.training)


def _scores(
    trial: Trial,
    source: CalibrationSource,
    ranking: Ranking,
    update: Update | None,
) -> Floats:
    if source.calibrator is None:
        return trial.scores(Recipe.of(source.method), ranking, update)
    record = source.calibrator.record_
    return fitted_scores(record.fitted, record.categories, ranking)


def _curves(samples: Samples) -> dict[str, ReliabilityCurve]:
    curves = {"all": reliability_curve(samples.score, samples.right)}
    for name, rows in samples.group_rows().items():
        curves[name] = reliability_curve(samples.score[rows], samples.right[rows])
    return curves
