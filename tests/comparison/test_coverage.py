"""Intervals cover the true difference as often as they say, on simulated detectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import lvdet
from comparison.simulated_detectors import Population, Tally

#: A count outside this region of a binomial distribution is not chance.
REGION = 0.999
LONG = pytest.mark.long


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Sets are too small to share, and other tests run beside."""
    lvdet.set_threads(1)


def region(sets: int, rate: float = 0.95) -> tuple[int, int]:
    low, high = binom.interval(REGION, sets, rate)
    return int(low), int(high)


def check(population: Population, images: int, sets: int, resamples: int) -> Tally:
    """AP of all protocols is covered at the nominal rate, and would not be by half the interval."""
    truth = population.true_differences(images, 5 * sets, seed=1)
    tally = population.tally(images, sets, resamples=resamples, truth=truth, seed=2)
    print(f"\n{images} images, {sets} sets, {resamples} resamples\n{tally}")
    low, high = region(sets)
    assert (tally.defined[:, 0] == sets).all()
    assert (tally.covered[:, 0] >= low).all(), tally
    assert (tally.covered[:, 0] <= high).all(), tally
    assert tally.half[:, 0].mean() < low, "half the interval would pass too"
    return tally


@pytest.mark.parametrize(("sets", "resamples"), [(60, 120), pytest.param(150, 200, marks=LONG)])
def test_intervals_cover_the_true_difference(sets: int, resamples: int) -> None:
    tally = check(Population(3_000, 12), images=300, sets=sets, resamples=resamples)
    # Rare classes are in a handful of images here: docs/comparing.md has what becomes of APr.
    low, _ = region(sets)
    assert (tally.covered[:, 2:] >= low).all(), tally


@pytest.mark.parametrize(("sets", "resamples"), [(40, 120), pytest.param(100, 150, marks=LONG)])
def test_equal_detectors_seldom_differ(sets: int, resamples: int) -> None:
    population = Population(3_000, 12, mixed=True)
    tally = population.tally(300, sets, resamples=resamples, truth=np.zeros((3, 4)), seed=3)
    _, most = region(sets, 0.05)
    print(f"\n{tally}")
    assert (tally.held <= most).all(), tally


@LONG
@pytest.mark.parametrize(("images", "classes"), [(300, 12), (1_000, 40)])
def test_intervals_cover_the_true_difference_in_many_sets(images: int, classes: int) -> None:
    check(Population(12_000, classes), images=images, sets=300, resamples=300)
