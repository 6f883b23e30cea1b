"""What a calibrator does beyond fitting: with what it was fitted to, and with files."""

from __future__ import annotations

import numpy as np

import lvdet
from lvdet.calibration.reliability import calibration_errors, reliability_curve

GT, DT = lvdet.simulate(images=60, classes=8, dets_per_image=30, bias=1.0, seed=3)


def test_fit_transform_is_fit_then_transform() -> None:
    both = lvdet.Calibrator("platt").fit_transform(GT, DT, iou_threshold=0.5)
    after = lvdet.Calibrator("platt").fit(GT, DT, iou_threshold=0.5).transform(DT)
    assert both.score.tolist() == after.score.tolist()
    assert both.score.tolist() != DT.score.tolist()
    assert np.array_equal(both.box, DT.box)


def test_a_fitted_calibrator_measures_its_own_scores() -> None:
    calibrator = lvdet.Calibrator("isotonic").fit(GT, DT, iou_threshold=0.5)
    before = lvdet.Calibrator("identity").measure(GT, DT, iou_threshold=0.5)
    after = calibrator.measure(GT, DT, iou_threshold=0.5)
    again = lvdet.Calibrator("identity").measure(GT, calibrator.transform(DT), iou_threshold=0.5)
    assert after.errors == again.errors
    assert after.errors.overall.brier < before.errors.overall.brier


def test_the_curve_of_a_measurement_is_that_of_its_samples() -> None:
    measured = lvdet.Calibrator("identity").measure(GT, DT)
    score, right = measured.samples.score, measured.samples.right
    assert measured.errors.overall == calibration_errors(score, right)
    curve, expected = measured.curve(bins=7), reliability_curve(score, right, bins=7)
    assert np.array_equal(curve.right, expected.right, equal_nan=True)
    assert len(curve.count) == 7
