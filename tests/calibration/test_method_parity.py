"""Every method against the reference packages, on random classes of all sizes and spreads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from calibration.made_samples import FITS
from lvdet.calibration import bbq, histogram, isotonic
from lvdet.calibration.maps import LogOdds
from oracles import calibration_references as ref
from oracles.calibration_cases import Floats, random_class

TOLERANCE = 1e-6
#: What is asked of the mean log loss.
LOSS_TOLERANCE = 1e-8
#: And of its slope at the optimum. Where all but a few of a thousand scores of 1e-9 are right, the
#: curvature is below what float64 can tell from 0.
SLOPE_TOLERANCE = 1e-6
#: How far netcal's own regressions, stopped early, are from the optimum they look for.
NETCAL_TOLERANCE = 0.02

BATCH = 25
BATCHES = range(2)
#: `make test-long` continues from there.
LONG_BATCHES = range(1, 88)

#: Lines in log odds, and how many of their weights are held at 0 or more.
RISING = {"beta": 2, "platt": 1, "temperature": 1}


def seeds(batch: int) -> range:
    return range(batch * BATCH, (batch + 1) * BATCH)


def places(seed: int, score: Floats) -> Floats:
    """The class's own scores, and others off all edges of bins."""
    return np.concatenate([score, np.random.default_rng(seed).random(300)])


def weights_of(method: str, score_map: LogOdds) -> Floats:
    a, b, c = score_map.a, score_map.b, score_map.c
    return np.array({"beta": [a, b, c], "platt": [a, c], "temperature": [a]}[method])


def assert_near(ours: Floats, theirs: Floats, what: object, most: float = TOLERANCE) -> None:
    assert np.abs(ours - theirs).max() <= most, what


# --- binning ---


def check_histogram(seed: int) -> None:
    score, right = random_class(seed)
    at = places(seed, score)
    assert_near(
        histogram.fit(score, right)(at), ref.netcal_chances("histogram", score, right)(at), seed
    )


def check_bbq(seed: int) -> None:
    score, right = random_class(seed)
    at = places(seed, score)
    for name, fit in (("bbq-aic", bbq.fit_aic), ("bbq-bic", bbq.fit_bic)):
        assert_near(fit(score, right)(at), ref.netcal_chances(name, score, right)(at), (seed, name))


@pytest.mark.parametrize("seed", range(100))
def test_scores_on_edges_are_in_the_bin_above(seed: int) -> None:
    """By the plain formulas: netcal's fit and transform differ there."""
    score, right = random_class(seed, sizes=(1, 300), on_edges=True)
    rows = score.tolist(), right.tolist()
    at = np.concatenate([score, np.arange(21) / 20, [0.1, 0.2, 0.25, 1 / 3, 0.7]])
    shares = ref.plain_histogram(*rows, 20)
    plain = np.array([ref.plain_histogram_at(value, shares) for value in at.tolist()])
    assert_near(histogram.fit(score, right)(at), plain, seed, 1e-12)
    for criterion, fit in (("AIC", bbq.fit_aic), ("BIC", bbq.fit_bic)):
        assert_near(
            fit(score, right)(at), ref.plain_bbq(*rows, criterion)(at), (seed, criterion), 1e-9
        )


def test_bbq_begins_at_the_cube_root() -> None:
    """8,000 rows begin at 2 bins. (8000 ** (1 / 3) is below 20 in float64, hence 1 in netcal.)"""
    rng = np.random.default_rng(8)
    score = -np.sort(-rng.random(8000))
    right = rng.random(8000) < 0.5  # knows nothing of the score: one bin would be the best
    low, every = right[score < 0.5].mean(), right.mean()
    (chance,) = bbq.fit_bic(score, right)(np.array([0.25]))
    assert abs(chance - low) < abs(chance - every)


# --- isotonic ---


def check_isotonic(seed: int) -> None:
    score, right = random_class(seed)
    at, fitted = places(seed, score), isotonic.fit(score, right)
    assert_near(fitted(at), ref.sklearn_isotonic(score, right)(at), seed)


# netcal's BBQ takes a second for a large class.
@pytest.mark.parametrize(
    ("check", "batch"), [*product((check_histogram, check_isotonic), BATCHES), (check_bbq, 0)]
)
def test_a_method_is_that_of_the_packages(check: Callable[[int], None], batch: int) -> None:
    for seed in seeds(batch):
        check(seed)


@pytest.mark.parametrize("seed", range(50))
def test_isotonic_is_exact(seed: int) -> None:
    """Also where scores are closer than scikit-learn tells apart."""
    score, right = random_class(seed, sizes=(1, 300))
    for scale in (1.0, 2.0**-60):
        exact = ref.plain_isotonic((score * scale).tolist(), right.tolist())
        ours = isotonic.fit(score * scale, right)(score * scale)
        theirs = np.array([float(exact[value]) for value in (score * scale).tolist()])
        assert_near(ours, theirs, seed, 1e-12)


def test_isotonic_is_netcal_s() -> None:
    for seed in seeds(0):
        score, right = random_class(seed)
        at = places(seed, score)
        theirs = ref.netcal_chances("isotonic", score, right)(at)
        assert_near(isotonic.fit(score, right)(at), theirs, seed)


# --- lines in log odds ---


def check_line(method: str, seed: int) -> str:
    """Says what the class was compared with."""
    score, right = random_class(seed)
    features, fitted = ref.features_of(method, score), FITS[method](score, right)
    weights, rising = weights_of(method, fitted), RISING[method]
    assert (weights[:rising] >= 0).all(), seed
    # Everywhere: the conditions of the constrained optimum, which is the one minimum.
    assert ref.off_optimum(features, right, weights, rising) <= SLOPE_TOLERANCE, seed
    if right.all() or not right.any() or not ref.has_optimum(features, right):
        return "no optimum"
    if method == "beta":
        chances, theirs = ref.betacal_chances(score, right)
        there = chances(score)
    else:
        theirs = ref.sklearn_logistic(features[:1], right, offset=method == "platt")
        there = np.exp(-np.logaddexp(0.0, -(theirs @ features)))
    if not (theirs[:rising] > 0).all():
        return "held at 0"
    # In units of each feature. betacal stops where a step no longer lowers the loss in float64.
    off = np.abs(ref.gradient(features, right, theirs)) / np.sqrt(np.mean(features**2, axis=1))
    if off.max() > 1e-10:
        assert ref.log_loss_of(fitted(score), right) <= ref.log_loss_of(there, right) + 1e-15, seed
        return "reference not at its optimum"
    assert_near(fitted(score), there, (method, seed))
    return "compared"


@pytest.mark.parametrize("method", RISING)
def test_lines_are_the_optimum_of_scikit_learn_and_betacal(method: str) -> None:
    outcomes = [check_line(method, seed) for batch in BATCHES for seed in seeds(batch)]
    assert outcomes.count("compared") >= 10
    assert outcomes.count("held at 0") >= 2
    assert outcomes.count("reference not at its optimum") <= 3


def check_loss(method: str, seed: int) -> None:
    """The constrained optimum by another optimiser, whichever weights are held at 0."""
    score, right = random_class(seed, sizes=(5, 1000))
    features = ref.features_of(method, score)
    weights = weights_of(method, FITS[method](score, right))
    loss = ref.log_loss(features, right, weights)
    best = ref.lowest_loss(features, right, RISING[method])
    assert loss <= best + LOSS_TOLERANCE, seed
    held = (weights[: RISING[method]] == 0).any()
    if held and ref.has_optimum(features, right):  # else L-BFGS-B may give up on the long way
        assert best <= loss + LOSS_TOLERANCE, seed


@pytest.mark.parametrize("method", RISING)
def test_loss_is_the_lowest_with_slopes_that_do_not_fall(method: str) -> None:
    for seed in range(BATCH):
        check_loss(method, seed)


def check_netcal_line(method: str, seed: int) -> None:
    score, right = random_class(seed, sizes=(200, 5000))
    features, fitted = ref.features_of(method, score), FITS[method](score, right)
    if not ref.has_optimum(features, right) or right.all() or not right.any():
        return
    weights = weights_of(method, fitted)
    if (weights[: RISING[method]] == 0).any() and method != "beta":
        return  # netcal lets these slopes fall
    theirs = ref.netcal_chances(method, score, right)(score)
    assert ref.log_loss_of(fitted(score), right) <= ref.log_loss_of(theirs, right) + 1e-12, seed
    if ref.log_loss_of(theirs, right) <= ref.log_loss_of(fitted(score), right) + 1e-6:
        assert_near(fitted(score), theirs, (method, seed), NETCAL_TOLERANCE)


@pytest.mark.parametrize("method", RISING)
def test_no_loss_is_higher_than_netcal_s(method: str) -> None:
    for seed in range(10):
        check_netcal_line(method, seed)


# --- many more ---


@pytest.mark.long
@pytest.mark.parametrize("batch", LONG_BATCHES)
def test_many_classes(batch: int) -> None:
    for seed in seeds(batch):
        check_histogram(seed)
        check_bbq(seed)
        check_isotonic(seed)
        for method in RISING:
            check_line(method, seed)
            check_loss(method, seed)
            if seed % 10 == 0:
                check_netcal_line(method, seed)
