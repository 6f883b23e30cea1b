"""Known answers by hand, and classes that leave a method little to go by."""

from __future__ import annotations

import math

import numpy as np
import pytest

from calibration.made_samples import FITS
from lvdet.calibration import bbq, beta, histogram, identity, isotonic, platt, temperature
from lvdet.calibration.maps import KEEP, Lines, LogOdds, Map, Steps, constant
from lvdet.calibration.order import calibrated

LINES = ("beta", "platt", "temperature")
GRID = np.concatenate([np.linspace(0.0, 1.0, 201), [1e-45, 1e-30, 1e-9, 1 - 2.0**-24]])


def rows(*pairs: tuple[float, int]) -> tuple[np.ndarray, np.ndarray]:
    """Score and label, by descending score."""
    ordered = sorted(pairs, key=lambda pair: -pair[0])
    score = np.array([score for score, _ in ordered], dtype=np.float64)
    return score, np.array([label == 1 for _, label in ordered])


def spread(score: float, hits: int, misses: int) -> list[tuple[float, int]]:
    """Rows of one score."""
    return [(score, 1)] * hits + [(score, 0)] * misses


def odds(chance: float) -> float:
    return math.log(chance / (1 - chance))


def chances(score_map: Map, *at: float) -> list[float]:
    return score_map(np.array(at, dtype=np.float64)).tolist()


# --- known answers ---


def test_histogram_counts_each_bin() -> None:
    fitted = histogram.fit(*rows((0.01, 0), (0.02, 1), (0.04, 0), (0.04, 0), (0.97, 1)))
    assert chances(fitted, 0.0, 0.049, 0.96, 1.0) == [0.25, 0.25, 1.0, 1.0]
    assert chances(fitted, 0.06, 0.5001, 0.94) == pytest.approx([0.075, 0.525, 0.925])


def test_an_edge_belongs_to_the_bin_above() -> None:
    fitted = histogram.fit(*rows((0.5, 1), (0.4999, 0), (1.0, 0)))
    assert chances(fitted, 0.499, 0.5, 0.5499, 1.0) == [0.0, 1.0, 1.0, 0.0]


def test_bbq_of_up_to_five_rows_is_the_share() -> None:
    for fit in (bbq.fit_aic, bbq.fit_bic):
        fitted = fit(*rows((0.1, 0), (0.2, 1), (0.8, 1), (0.9, 1)))
        assert chances(fitted, 0.0, 0.3, 1.0) == [0.75] * 3


def test_bbq_weighs_histograms_by_what_they_explain() -> None:
    """Ten rows, so histograms of one bin and of two: 0.5 everywhere, and (0.2, 0.8)."""
    score, right = rows(*spread(0.25, 1, 4), *spread(0.75, 4, 1))
    one, two = -10 * math.log(0.5), -8 * math.log(0.8) - 2 * math.log(0.2)
    for fit, each in ((bbq.fit_aic, 2.0), (bbq.fit_bic, math.log(10))):
        relative = math.exp(((each * 2 + 2 * two) - (each * 1 + 2 * one)) / 2)  # of one to two
        share = 1 / (1 + relative)
        low, high = chances(fit(score, right), 0.2, 0.7)
        assert low == pytest.approx(share * 0.2 + (1 - share) * 0.5, abs=1e-12)
        assert high == pytest.approx(share * 0.8 + (1 - share) * 0.5, abs=1e-12)


def test_isotonic_pools_what_falls() -> None:
    score, right = rows((0.1, 0), (0.2, 1), (0.3, 0), (0.4, 0), (0.6, 1), (0.8, 1))
    fitted = isotonic.fit(score, right)
    assert chances(fitted, 0.2, 0.3, 0.4) == pytest.approx([1 / 3] * 3)
    assert chances(fitted, 0.0, 0.1, 0.6, 0.8, 1.0) == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert chances(fitted, 0.15, 0.5) == pytest.approx([1 / 6, 2 / 3])  # straight between


def test_isotonic_weighs_equal_scores_by_their_number() -> None:
    fitted = isotonic.fit(*rows(*spread(0.2, 3, 1), *spread(0.5, 1, 5)))
    assert chances(fitted, 0.1, 0.2, 0.5, 0.9) == pytest.approx([0.4] * 4)


def test_platt_goes_through_two_scores() -> None:
    """With two scores the most likely line hits both shares."""
    fitted = platt.fit(*rows(*spread(0.3, 1, 4), *spread(0.8, 3, 1)))
    assert chances(fitted, 0.3, 0.8) == pytest.approx([0.2, 0.75], abs=1e-9)
    slope = (odds(0.75) - odds(0.2)) / (odds(0.8) - odds(0.3))
    assert fitted.a == fitted.b == pytest.approx(slope, abs=1e-9)
    assert fitted.c == pytest.approx(odds(0.2) - slope * odds(0.3), abs=1e-9)


def test_beta_goes_through_three_scores() -> None:
    given = {0.2: (1, 9), 0.5: (4, 6), 0.9: (9, 1)}
    fitted = beta.fit(*rows(*(row for at, counts in given.items() for row in spread(at, *counts))))
    shares = [hits / (hits + misses) for hits, misses in given.values()]
    assert chances(fitted, *given) == pytest.approx(shares, abs=1e-9)
    sides = [[math.log(at), -math.log(1 - at), 1.0] for at in given]
    by_hand = np.linalg.solve(sides, [odds(share) for share in shares])
    assert (by_hand[:2] > 0).all()
    assert [fitted.a, fitted.b, fitted.c] == pytest.approx(by_hand, abs=1e-8)


def test_temperature_of_one_score_hits_its_share() -> None:
    fitted = temperature.fit(*rows(*spread(0.9, 7, 3)))
    assert fitted.a == fitted.b == pytest.approx(odds(0.7) / odds(0.9), abs=1e-9)
    assert fitted.c == 0
    assert chances(fitted, 0.5, 0.9) == pytest.approx([0.5, 0.7], abs=1e-9)


def test_beta_leaves_out_the_weight_that_would_fall() -> None:
    """Chances that rise and then fall want b below 0: what remains goes through no more."""
    score, right = rows(*spread(0.1, 1, 9), *spread(0.5, 9, 1), *spread(0.9, 7, 3))
    fitted = beta.fit(score, right)
    assert fitted.b == 0
    assert fitted.a > 0
    low, middle, high = chances(fitted, 0.1, 0.5, 0.9)
    assert low < middle < high
    assert low + middle + high == pytest.approx(1.7, abs=1e-9)  # the mean is the labels' own


@pytest.mark.parametrize("method", LINES)
def test_small_scores_are_fitted_as_well_as_large_ones(method: str) -> None:
    """Where all scores are small the weight of -log(1 - s) is in the thousands."""
    given = {1e-5: (2, 8), 2e-5: (4, 6), 8e-5: (8, 2)}
    fitted = FITS[method](
        *rows(*(row for at, counts in given.items() for row in spread(at, *counts)))
    )
    if method == "beta":
        assert chances(fitted, *given) == pytest.approx([0.2, 0.4, 0.8], abs=0.02)
    score = np.array(list(given))
    mean = sum(10 * chance for chance in fitted(score).tolist())
    if method != "temperature":
        assert mean == pytest.approx(14, abs=1e-6)


def test_identity_leaves_scores_untouched() -> None:
    score = np.random.default_rng(0).random(100)
    fitted = identity.fit(score, score > 0.5)
    assert fitted == KEEP
    assert fitted(GRID).tobytes() == GRID.tobytes()
    assert calibrated(fitted, GRID).tobytes() == GRID.tobytes()
    beyond = np.array([-3.0, 0.0, 7.5])  # not chances at all
    assert calibrated(fitted, beyond).tolist() == beyond.tolist()


def test_maps_of_three_shapes() -> None:
    assert chances(LogOdds(2.0, 2.0, 0.0), 0.5, 0.8) == pytest.approx([0.5, 16 / 17])
    assert chances(Steps(np.array([0.3, 0.6]), np.array([0.1, 0.5, 0.4])), 0.29, 0.3, 0.6) == [
        0.1,
        0.5,
        0.4,
    ]
    assert chances(Lines(np.array([0.2, 0.4]), np.array([0.1, 0.5])), 0.0, 0.3, 0.9) == [
        pytest.approx(0.1),
        pytest.approx(0.3),
        pytest.approx(0.5),
    ]
    assert chances(constant(0.3), 0.0, 1.0) == [0.3, 0.3]


# --- classes with little to go by ---

EDGE = [(0.0, 0), (0.0, 1), (1.0, 1), (1.0, 0), (0.5, 1)]
DEGENERATE = {
    "one, right": [(0.7, 1)],
    "one, wrong": [(0.7, 0)],
    "one of score 0": [(0.0, 1)],
    "one of score 1": [(1.0, 0)],
    "two, the higher right": [(0.7, 1), (0.2, 0)],
    "two, the higher wrong": [(0.7, 0), (0.2, 1)],
    "two, equal": [(0.4, 1), (0.4, 0)],
    "all right": [(score / 50, 1) for score in range(50)],
    "all wrong": [(score / 50, 0) for score in range(50)],
    "all equal": spread(0.3, 20, 10),
    "all equal and right": spread(0.3, 20, 0),
    "all equal and wrong": spread(0.3, 0, 20),
    "all at one half": spread(0.5, 6, 2),
    "all 0": spread(0.0, 3, 5),
    "all 1": spread(1.0, 3, 5),
    "two scores": [*spread(0.2, 3, 7), *spread(0.6, 5, 5)],
    "two scores, falling": [*spread(0.2, 7, 3), *spread(0.6, 5, 5)],
    "two scores, apart": [*spread(0.2, 0, 5), *spread(0.6, 5, 0)],
    "neighbours": [*spread(0.3, 3, 7), *spread(float(np.nextafter(0.3, 1)), 5, 5)],
    "exactly 0 and 1": EDGE,
    "0 wrong and 1 right": [*spread(0.0, 0, 5), *spread(1.0, 5, 0)],
    "0 right and 1 wrong": [*spread(0.0, 5, 0), *spread(1.0, 0, 5)],
    "apart": [(score / 100, int(score > 60)) for score in range(101)],
    "apart but for a tie": [*((score / 100, int(score > 60)) for score in range(101)), (0.6, 1)],
    "turned round": [(score / 100, int(score < 60)) for score in range(101)],
    "right in the middle": [(score / 100, int(30 < score < 60)) for score in range(101)],
    "wrong in the middle": [(score / 100, int(not 30 < score < 60)) for score in range(101)],
    "one right of many": [(score / 1000, int(score == 900)) for score in range(1001)],
    "one right of many, the lowest": [(score / 1000, int(score == 0)) for score in range(1001)],
    "tiny": [(score * 1e-40, int(score % 3 == 0)) for score in range(30)],
    "almost 1": [(1 - score * 2.0**-24, int(score % 3 == 0)) for score in range(30)],
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("method", FITS)
def test_no_class_is_too_little(method: str, name: str) -> None:
    """Warnings are errors here."""
    score, right = rows(*DEGENERATE[name])
    fitted = FITS[method](score, right)
    for at in (score, GRID):
        chance = fitted(at)
        assert chance.shape == at.shape
        assert ((chance >= 0) & (chance <= 1)).all()  # NaN is neither
        new = calibrated(fitted, at)
        assert ((new >= 0) & (new <= 1)).all()


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("method", ["beta", "platt", "isotonic"])
def test_the_mean_chance_is_the_share_of_right_ones(method: str, name: str) -> None:
    """So it is at the optimum of all fits with an offset, also of those that never fall."""
    score, right = rows(*DEGENERATE[name])
    assert FITS[method](score, right)(score).mean() == pytest.approx(right.mean(), abs=1e-6)


@pytest.mark.parametrize("method", ["beta", "platt", "isotonic", "temperature"])
def test_labels_turned_round_never_turn_the_order(method: str) -> None:
    score, right = rows(*DEGENERATE["turned round"])
    chance = FITS[method](score, right)(score)
    share = 0.5 if method == "temperature" else right.mean()
    assert chance == pytest.approx(np.full(len(score), share), abs=1e-6)


@pytest.mark.parametrize("method", ["beta", "platt", "isotonic"])
def test_labels_apart_are_told_apart(method: str) -> None:
    score, right = rows(*DEGENERATE["apart"])
    assert FITS[method](score, right)(score) == pytest.approx(right.astype(float), abs=1e-6)


@pytest.mark.parametrize("method", ["beta", "platt"])
def test_equal_scores_say_nothing_of_the_slope(method: str) -> None:
    fitted = FITS[method](*rows(*spread(0.3, 20, 10)))
    assert isinstance(fitted, LogOdds)
    assert (fitted.a, fitted.b) == pytest.approx((1.0, 1.0), abs=1e-9)
    assert chances(fitted, 0.3) == pytest.approx([2 / 3])
