"""The oracles of calibration agree where two of them say the same thing."""

from __future__ import annotations

import numpy as np
import pytest

from long_cases import first
from oracles import calibration_references as ref
from oracles.calibration_cases import HAIR, random_class


@pytest.mark.long
def test_classes_depend_on_their_seed_alone_and_vary() -> None:
    sizes, shares, tied = [], [], 0
    for seed in range(300):
        score, right = random_class(seed)
        again = random_class(seed)
        assert score.tobytes() == again[0].tobytes()
        assert right.tobytes() == again[1].tobytes()
        assert (np.diff(score) <= 0).all()
        assert score.min() > 0
        assert score.max() < 1
        sizes.append(len(score))
        shares.append(right.mean())
        tied += len(np.unique(score)) < len(score)
    assert min(sizes) < 10
    assert max(sizes) > 9_000
    assert np.count_nonzero(np.array(shares) < 0.01) > 20
    assert np.count_nonzero(np.array(shares) > 0.99) > 20
    assert tied > 100


@pytest.mark.long
def test_the_hair_keeps_rounded_scores_off_all_edges() -> None:
    rounded = np.arange(100_000) / 100_000 + HAIR
    for bins in range(1, 217):
        edges = np.linspace(0.0, 1.0, bins + 1)
        near = np.searchsorted(edges, rounded).clip(1, bins)
        distance = np.minimum(np.abs(edges[near] - rounded), np.abs(edges[near - 1] - rounded))
        assert distance.min() > 1e-12


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_plain_formulas_are_netcal_off_the_edges(seed: int) -> None:
    score, right = random_class(seed, sizes=(5, 500))
    rows = score.tolist(), right.tolist()
    shares = ref.plain_histogram(*rows, 20)
    plain = [ref.plain_histogram_at(value, shares) for value in score.tolist()]
    assert plain == pytest.approx(ref.netcal_chances("histogram", score, right)(score), abs=1e-12)
    for criterion in ("AIC", "BIC"):
        theirs = ref.netcal_chances(f"bbq-{criterion.lower()}", score, right)(score)
        assert ref.plain_bbq(*rows, criterion)(score) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_plain_isotonic_is_that_of_the_packages(seed: int) -> None:
    score, right = random_class(seed, sizes=(5, 500))
    exact = ref.plain_isotonic(score.tolist(), right.tolist())
    plain = [float(exact[value]) for value in score.tolist()]
    assert plain == pytest.approx(ref.sklearn_isotonic(score, right)(score), abs=1e-12)
    assert plain == pytest.approx(ref.netcal_chances("isotonic", score, right)(score), abs=1e-12)


def test_whether_there_is_an_optimum() -> None:
    score = np.array([0.9, 0.7, 0.5, 0.3, 0.1])
    expected = {
        # of labels by descending score: (beta, platt)
        "00000": (False, False),
        "11000": (False, False),
        "00011": (False, False),
        "01110": (False, True),  # of any sign, beta's map may rise and then fall
        "10100": (True, True),
        "10101": (True, True),
    }
    for labels, answers in expected.items():
        right = np.array([label == "1" for label in labels])
        for method, answer in zip(("beta", "platt"), answers, strict=True):
            found = ref.has_optimum(ref.features_of(method, score), right)
            assert found == answer, (labels, method)


@pytest.mark.long
def test_the_optimum_by_three_ways() -> None:
    compared = 0
    for seed in range(40):
        score, right = random_class(seed, sizes=(50, 500))
        features = ref.features_of("beta", score)
        if not ref.has_optimum(features, right):
            continue
        chances, weights = ref.betacal_chances(score, right)
        if not (weights[:2] > 0).all() or ref.off_optimum(features, right, weights, 2) > 1e-12:
            continue
        compared += 1
        free = ref.sklearn_logistic(features[:2], right, offset=True)
        assert free == pytest.approx(weights, rel=1e-6)
        assert ref.log_loss_of(chances(score), right) == pytest.approx(
            ref.log_loss(features, right, weights), abs=1e-12
        )
        assert ref.lowest_loss(features, right, 2) == pytest.approx(
            ref.log_loss(features, right, weights), abs=1e-9
        )
    assert compared > 5


def test_the_gradient_is_that_of_the_loss() -> None:
    score, right = random_class(3, sizes=(50, 500))
    features, weights, step = ref.features_of("beta", score), np.array([0.7, 1.2, -0.4]), 1e-6
    for axis, slope in enumerate(ref.gradient(features, right, weights).tolist()):
        move = step * np.eye(3)[axis]
        ahead = ref.log_loss(features, right, weights + move)
        behind = ref.log_loss(features, right, weights - move)
        assert (ahead - behind) / (2 * step) == pytest.approx(slope, abs=1e-7)
