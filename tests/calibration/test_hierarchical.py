"""Classes that help each other: evidence decides, and what is learned is most likely."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from calibration.made_samples import Rows, joined, samples_of_classes
from lvdet.calibration import beta
from lvdet.calibration.hierarchical import Evidence, Levels, fit_hierarchical, learned
from lvdet.calibration.maps import LogOdds

GRID = np.linspace(0.001, 0.999, 200)


def fitted(classes: list[Rows], frequency: str | None = None) -> list[LogOdds]:
    """The maps of the classes; frequencies as a string of letters, none where None."""
    return fit_hierarchical(samples_of_classes(classes, frequency or "-" * len(classes)))


def drawn(rng: np.random.Generator, count: int, weights: tuple[float, float, float]) -> Rows:
    """Scores, and labels right with the log odds of beta calibration."""
    score = rng.beta(0.5, 2.0, count).clip(1e-6, 1 - 1e-6)
    return score, rng.random(count) < LogOdds(*weights)(score)


def distance(one: LogOdds, other: LogOdds) -> float:
    return float(np.abs(one(GRID) - other(GRID)).max())


def test_a_class_without_detections_has_what_its_group_has() -> None:
    rng = np.random.default_rng(0)
    nothing = (np.zeros(0), np.zeros(0, dtype=bool))
    frequent = [drawn(rng, 3000, (1.0, 1.0, 1.0 + 0.3 * k)) for k in range(6)]
    rare = [drawn(rng, 200, (1.0, 1.0, -2.0 + 0.3 * k)) for k in range(6)]
    maps = fitted([*frequent, nothing, nothing, *rare, nothing], "f" * 8 + "r" * 7)
    assert maps[6] == maps[7]
    assert maps[6](np.array([0.5]))[0] > 0.75  # the mean of the group's offsets is 1.75
    assert maps[14](np.array([0.5]))[0] < 0.4
    assert min(m.a for m in maps) >= 0
    assert min(m.b for m in maps) >= 0


def test_evidence_outweighs_the_others() -> None:
    rng = np.random.default_rng(1)
    others = [drawn(rng, 2000, (1.0, 1.0, 0.2 * rng.normal())) for _ in range(20)]
    score, right = drawn(rng, 60, (1.0, 1.0, -2.5))
    own = beta.fit(*joined([(score, right)]))
    away = []
    for times in (1, 10, 100, 1000):
        repeated = (np.repeat(score, times), np.repeat(right, times))
        away.append(distance(fitted([repeated, *others])[0], own))
    assert away == sorted(away, reverse=True)
    assert away[0] > 0.1
    assert away[-1] < 0.01


def test_a_class_that_says_little_stays_near_its_group() -> None:
    rng = np.random.default_rng(2)
    others = [drawn(rng, 5000, (1.0, 1.0, -1.0 + 0.1 * rng.normal())) for _ in range(30)]
    lucky = (np.array([0.3]), np.array([True]))  # beta calibration would say 1 for every score
    maps = fitted([lucky, *others], "r" + "f" * 30)
    whole = LogOdds(1.0, 1.0, -1.0)
    assert distance(maps[0], whole) < 0.25
    assert beta.fit(*lucky)(np.array([0.3]))[0] > 0.999


def test_equal_classes_are_calibrated_alike() -> None:
    rng = np.random.default_rng(3)
    one = drawn(rng, 400, (0.8, 1.4, -0.5))
    own = beta.fit(*joined([one]))
    assert max(distance(found, own) for found in fitted([one] * 8, "rrccccff")) < 0.02


@pytest.mark.parametrize("frequency", [None, "r", "rc", "rcf"])
def test_degenerate_classes(frequency: str | None) -> None:
    """Nothing at all, one, all right, all wrong, equal scores, two scores, 0 and 1, separable."""
    cases = [
        ([], []),
        ([0.4], [True]),
        ([0.4], [False]),
        ([0.9, 0.5, 0.1], [True, True, True]),
        ([0.9, 0.5, 0.1], [False, False, False]),
        ([0.5] * 6, [True, False, False, True, False, False]),
        ([0.8, 0.8, 0.2, 0.2], [True, False, False, False]),
        ([1.0, 1.0, 0.0, 0.0], [True, False, True, False]),
        ([0.9, 0.8, 0.2, 0.1], [True, True, False, False]),
        ([0.9, 0.8, 0.2, 0.1], [False, False, True, True]),
    ]
    classes = [(np.array(score), np.array(right, dtype=bool)) for score, right in cases]
    letters = ((frequency or "-") * len(cases))[: len(cases)]
    alone = [([one], letter) for one, letter in zip(classes, letters, strict=True)]
    for chosen, text in ((classes, letters), *alone):
        for found in fitted(chosen, text):
            chance = found(np.array([0.0, 1e-9, 0.3, 0.9, 1.0]))
            assert np.isfinite(chance).all()
            assert (np.diff(chance) >= 0).all()
            assert chance.min() >= 0
            assert chance.max() <= 1


@pytest.mark.parametrize("right", [[True, False, False, False, False], [True] * 5])
@pytest.mark.parametrize("frequency", ["fffr", "ffff", None])
def test_classes_without_a_right_one_beside_one_with(
    right: list[bool], frequency: str | None
) -> None:
    """Labels that can be told apart over all classes: nothing but the levels holds them."""
    rng = np.random.default_rng(0)
    wrong = [(rng.beta(0.5, 4.0, 1000), np.zeros(1000, dtype=bool)) for _ in range(3)]
    maps = fitted([*wrong, (np.full(5, 0.5), np.array(right))], frequency)
    for found in maps:
        assert max(abs(found.a), abs(found.b), abs(found.c)) < 12
    assert maps[3](np.array([0.5]))[0] > max(m(np.array([0.5]))[0] for m in maps[:3])


def test_a_lone_right_one_does_not_make_every_score_a_likely_one() -> None:
    rng = np.random.default_rng(1)
    others = [drawn(rng, 1000, (1.0, 1.0, 0.3 * rng.normal())) for _ in range(30)]
    maps = fitted([*others, (np.array([0.01]), np.array([True]))], "f" * 30 + "r")
    low, high = maps[-1](np.array([1e-6, 0.9]))
    assert low < 0.1
    assert high > 0.5


@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1), groups=st.integers(1, 3))
def test_what_is_learned_is_most_likely(seed: int, groups: int) -> None:
    """No step away from the levels makes normal evidence more likely, by the density itself."""
    rng = np.random.default_rng(seed)
    classes, size = 12, 3
    group = np.sort(rng.integers(0, groups, classes)).astype(np.int32)
    group[:groups] = np.arange(groups)
    root = rng.normal(size=(classes, size, size))
    precision = root @ root.transpose(0, 2, 1) + 0.3 * np.eye(size)
    shift = rng.normal(size=(classes, size)) * 2
    evidence = Evidence(precision, shift, group)
    levels = Levels.around(rng.normal(size=size), groups)
    for _ in range(40):  # each call makes many steps
        levels = learned(levels, evidence)
    best = log_likelihood(levels, evidence)
    for _ in range(30):
        step = 10 ** rng.uniform(-3, -0.5)
        moved = Levels(
            levels.mean,
            tilted(rng, levels.spread, step),
            levels.top_mean + step * rng.normal(size=size),
            tilted(rng, levels.top_spread, step),
        )
        assert log_likelihood(moved, evidence) <= best + 0.005


def tilted(rng: np.random.Generator, matrix: np.ndarray, step: float) -> np.ndarray:
    factor = np.eye(len(matrix)) + step * rng.normal(size=matrix.shape)
    return factor @ matrix @ factor.T


def log_likelihood(levels: Levels, evidence: Evidence) -> float:
    """Density of what classes say, weights of classes and groups integrated out, with the class
    and the calibrated group that are added to the sums."""
    total = 0.0
    size = levels.spread.shape[0]
    for number in range(len(levels.mean)):
        members = np.flatnonzero(evidence.group == number)
        said = [np.linalg.solve(evidence.precision[k], evidence.shift[k]) for k in members]
        covariance = np.kron(np.ones((len(members), len(members))), levels.top_spread)
        for place, k in enumerate(members):
            here = slice(place * size, (place + 1) * size)
            covariance[here, here] += levels.spread + np.linalg.inv(evidence.precision[k])
        mean = np.tile(levels.top_mean, len(members))
        total += multivariate_normal(mean, covariance).logpdf(np.concatenate(said))
    away = np.array([1.0, 1.0, 0.0]) - levels.top_mean
    for spread, more in ((levels.spread, 0.0), (levels.top_spread, np.outer(away, away))):
        added = np.diag([0.04, 0.04, 0.25]) + more
        total -= (np.linalg.slogdet(spread)[1] + np.trace(np.linalg.solve(spread, added))) / 2
    return float(total)
