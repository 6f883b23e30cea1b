"""What calibration does to detectors whose calibration is known."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

import lvdet
from long_cases import first
from lvdet.calibration.methods import PAPER
from lvdet.simulation.simulate import Settings, simulate_training

#: Methods whose map never falls.
IN_ORDER = ("beta", "isotonic", "platt", "temperature", "hierarchical")


def detector(seed: int, **options: float) -> Settings:
    """On 1,000 images of 150 classes, found in verified cells alone."""
    return Settings(
        images=1000, classes=150, dets_per_image=None, candidates_per_image=1, seed=seed, **options
    )


def gain(settings: Settings, method: str, training_images: int = 2000) -> tuple[float, float]:
    """By how much AP-Pool and AP-Fixed rise, in points, fitted on other images."""
    gt, dt = lvdet.simulate(**asdict(settings))
    calibrator = lvdet.Calibrator(method).fit(
        *simulate_training(settings, training_images), dets_per_class=1_000_000
    )
    before, after = lvdet.evaluate(gt, dt), lvdet.evaluate(gt, calibrator.transform(dt))
    return (
        100 * (after["pool"].AP - before["pool"].AP),
        100 * (after["fixed"].AP - before["fixed"].AP),
    )


@pytest.mark.parametrize("method", [*PAPER, "hierarchical"])
def test_calibrating_a_biased_detector_raises_ap_pool(method: str) -> None:
    pool, fixed = gain(detector(0, bias=2.0, class_bias=1.0), method)
    assert pool > 1
    if method in IN_ORDER:
        assert abs(fixed) < 1e-10


@pytest.fixture(scope="module", params=first(1, [0, 1]))
def calibrated(request: pytest.FixtureRequest) -> tuple[Settings, float]:
    """A detector that is calibrated, and the standard error of its AP-Pool over images. With boxes
    on the objects, right at IoU 0.75 is right at 0.5, where it is."""
    settings = replace(detector(request.param, localisation=1.0), classes=40)
    gt, dt = lvdet.simulate(**asdict(settings))
    number = np.random.default_rng(0).permutation(np.arange(len(gt.images)) % 8)
    parts = []
    for part in range(8):
        here = number == part
        rows = here[np.searchsorted(gt.images.ids, dt.image_ids)][dt.image]
        parts.append(100 * lvdet.evaluate(gt.where(here[gt.image]), dt[rows])["pool"].AP)
    return settings, float(np.std(parts, ddof=1) / len(parts) ** 0.5)


@pytest.mark.parametrize("method", ["histogram", "bbq", *IN_ORDER])
def test_a_calibrated_detector_stays_as_it_is(
    method: str, calibrated: tuple[Settings, float]
) -> None:
    """Fitted to hundreds of correct detections of every class, a method changes nothing beyond the
    noise of the images."""
    settings, noise = calibrated
    pool, fixed = gain(settings, method, training_images=8000)
    assert abs(pool) < 2 * noise
    assert noise < 1
    if method in IN_ORDER:
        assert abs(fixed) < 1e-10
    if method == "hierarchical":
        assert abs(pool) < 0.1


def test_the_errors_of_a_calibrated_detector_are_small_and_of_a_biased_one_large() -> None:
    errors = {}
    for bias in (0.0, 2.0):
        settings = detector(0, localisation=1.0, bias=bias)
        measured = lvdet.Calibrator("identity").measure(*lvdet.simulate(**asdict(settings)))
        errors[bias] = measured.errors.by_frequency["c"].expected
    assert errors[0.0] < 0.02
    assert errors[2.0] > 0.05


def test_calibration_mends_the_errors_of_a_biased_detector() -> None:
    settings = detector(0, bias=2.0, class_bias=1.0)
    calibrator = lvdet.Calibrator().fit(*simulate_training(settings, 2000))
    gt, dt = lvdet.simulate(**asdict(settings))
    before = lvdet.Calibrator("identity").measure(gt, dt).errors
    after = lvdet.Calibrator("identity").measure(gt, calibrator.transform(dt)).errors
    for group in ("r", "c", "f"):
        assert after.by_frequency[group].expected < 0.7 * before.by_frequency[group].expected
        assert after.by_frequency[group].log_loss < before.by_frequency[group].log_loss
