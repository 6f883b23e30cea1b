"""Rounds of hierarchical calibration: they come to an end where the bottom of parabolas is far off,
and no input is too odd for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from calibration.made_samples import Rows, samples_of_classes
from lvdet.calibration import hierarchical
from lvdet.calibration.fitting import Recipe, fit_classes
from lvdet.calibration.folds import cross_scores
from lvdet.calibration.hierarchical import Evidence, Levels, fit_hierarchical, learned
from lvdet.calibration.labelled_scores import Samples
from lvdet.calibration.maps import LogOdds

AT = np.array([0.0, 1e-300, 1e-9, 1e-3, 0.3, 0.9, 1 - 1e-9, 1.0])
FREQUENT = (1.25, 0.9, 1.2)


class Rounds:
    """Levels at the end of each round, in order; `ended` where the last one changed little."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.levels: list[Levels] = []
        self.ended = False

        def spy(levels: Levels, evidence: Evidence, reach: np.ndarray) -> Levels:
            found = learned(levels, evidence, reach)
            self.levels.append(found)
            self.ended = found.distance(levels) < 1e-3
            return found

        monkeypatch.setattr(hierarchical, "learned", spy)


def tail_of_small_scores(
    seed: int, frequent: int, rows: int, rare: int, few: int, offset: float, tail: float
) -> Samples:
    """Scores from 1e-3 on, most near that. Rare classes have `few` each, and theirs are right far
    more often than those of frequent ones with the same score: from the mean of all, hardly a label
    of theirs looks likely, and the bottom of the parabolas is nowhere near."""
    rng = np.random.default_rng(seed)

    def drawn(count: int, weights: tuple[float, float, float], tail: float) -> Rows:
        score = (1e-3 * rng.random(count) ** -tail).clip(1e-3, 0.998)
        return score, rng.random(count) < LogOdds(*weights)(score)

    parts = [drawn(rows, FREQUENT, 1.2) for _ in range(frequent)]
    parts += [drawn(few, (1.3, 0.0, offset), tail) for _ in range(rare)]
    return samples_of_classes(parts, "f" * frequent + "r" * rare)


RUNAWAYS = [
    (149, 3, 1000, 100, 1, 8.0, 1.0),
    (635, 20, 300, 30, 1, 9.0, 0.3),
    (192, 10, 3000, 10, 2, 10.0, 0.3),
]


@pytest.mark.parametrize("made", RUNAWAYS)
def test_rounds_end_where_parabolas_mislead(
    made: tuple[int, int, int, int, int, float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Means went to and fro further each time here, until a matrix had no inverse."""
    samples = tail_of_small_scores(*made)
    rounds = Rounds(monkeypatch)
    maps = fit_hierarchical(samples)
    assert rounds.ended
    assert len(rounds.levels) < 40
    assert max(np.abs(levels.mean).max() for levels in rounds.levels) < 20
    said = np.concatenate([found(samples.score[samples.rows(k)]) for k, found in enumerate(maps)])
    begin = int(samples.offsets[made[1]])
    frequent, rare = slice(0, begin), slice(begin, None)
    assert said[frequent].mean() == pytest.approx(samples.right[frequent].mean(), abs=0.01)
    # Some thirty detections are held back a little.
    assert said[rare].mean() == pytest.approx(samples.right[rare].mean(), abs=0.12)


def test_rounds_end_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = tail_of_small_scores(*RUNAWAYS[0])
    rounds = Rounds(monkeypatch)
    parts = np.arange(len(samples), dtype=np.int32) % 5
    new = cross_scores(
        samples, Recipe.of("hierarchical"), parts, parts, samples.category, samples.score
    )
    assert np.isfinite(new).all()
    assert len(rounds.levels) < 5 * 40
    assert max(np.abs(levels.mean).max() for levels in rounds.levels) < 20


def test_where_a_round_went_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short steps come to the same maps as long ones."""
    samples = tail_of_small_scores(*RUNAWAYS[0])
    usual = fit_hierarchical(samples)
    monkeypatch.setattr(hierarchical, "_REACH", 0.1)
    short = fit_hierarchical(samples)
    at = np.array([0.001, 0.01, 0.1, 0.5])
    assert (
        max(np.abs(one(at) - other(at)).max() for one, other in zip(usual, short, strict=True))
        < 0.02
    )


def test_means_go_no_further_than_they_may() -> None:
    """The rest stays where one would go further; where none would, nothing is held back."""
    one = np.eye(3)
    evidence = Evidence(
        np.stack([50 * one, 50 * one]), np.array([[500.0, 0, 0], [50.0, 0, 0]]), np.arange(2)
    )
    levels = Levels.around(np.array([1.0, 1.0, 0.0]), 2)
    free = learned(levels, evidence)
    assert np.abs(free.mean - levels.mean).max() > 0.5
    held = learned(levels, evidence, np.array([0.25, 0.25]))
    assert np.abs(held.mean - levels.mean).max(axis=1)[0] == pytest.approx(0.25)
    assert np.abs(held.mean - levels.mean).max(axis=1)[1] <= 0.25
    assert (held.spread == levels.spread).all()
    assert (held.top_spread == levels.top_spread).all()
    wide = learned(levels, evidence, np.array([100.0, 100.0]))
    assert (wide.mean == free.mean).all()
    assert (wide.spread == free.spread).all()


def test_surprise_is_the_density_of_means_weights_and_labels() -> None:
    """Under other levels than they were found under: the difference between two is that of the
    densities' logarithms."""
    rng = np.random.default_rng(3)
    group = np.array([0, 0, 1, 1, 1], dtype=np.int32)
    root = rng.normal(size=(2, 3, 3))
    spread, top_spread = root @ root.transpose(0, 2, 1) + 0.2 * np.eye(3)
    levels = Levels(rng.normal(size=(2, 3)), spread, rng.normal(size=3), top_spread)
    surprises, densities = [], []
    for _ in range(2):
        own = Levels.around(rng.normal(size=3), 2)
        own = replace(own, mean=rng.normal(size=(2, 3)))
        weights, loss = rng.normal(size=(5, 3)), rng.random(5)
        nothing = Evidence(np.zeros((5, 3, 3)), np.zeros((5, 3)), group)
        surprises.append(hierarchical._Seen(own, weights, loss, nothing).surprise(levels))
        density = multivariate_normal(levels.top_mean, top_spread).logpdf(own.mean)
        for k, place in enumerate(group):
            normal = multivariate_normal(own.mean[place], spread)
            density[place] += normal.logpdf(weights[k]) - loss[k]
        densities.append(density)
    assert surprises[1] - surprises[0] == pytest.approx(densities[0] - densities[1])


@pytest.mark.parametrize("much", [1e30, 1e300, np.inf, np.nan])
def test_evidence_beyond_float64_teaches_nothing(much: float) -> None:
    levels = Levels.around(np.array([1.0, 1.0, 0.0]), 1)
    evidence = Evidence(
        np.full((2, 3, 3), much), np.full((2, 3), much), np.zeros(2, dtype=np.int32)
    )
    with np.errstate(all="ignore"):
        found = learned(levels, evidence)
    assert found.sound
    assert np.linalg.inv(found.spread) == pytest.approx(np.linalg.inv(levels.spread))


SCORES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "detector": lambda rng, count: rng.beta(0.5, 4.0, count),
    "equal": lambda rng, count: np.full(
        count, rng.choice([0, 1e-300, 1e-16, 1e-3, 0.5, 1 - 1e-16, 1])
    ),
    "zero or one": lambda rng, count: rng.choice([0.0, 1.0], count),
    "two": lambda rng, count: rng.choice(rng.random(2), count),
    "tiny": lambda rng, count: 10 ** rng.uniform(-20, -3, count),
    "near one": lambda rng, count: 1 - 10 ** rng.uniform(-17, -3, count),
    "from 1e-3": lambda rng, count: 10 ** rng.uniform(-3, 0, count),
}
LABELS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "none": lambda _, score: np.zeros(len(score), dtype=bool),
    "all": lambda _, score: np.ones(len(score), dtype=bool),
    "separable": lambda _, score: score > np.median(score),
    "turned round": lambda _, score: score < np.median(score),
    "chances": lambda rng, score: rng.random(len(score)) < score,
    "one": lambda rng, score: np.arange(len(score)) == rng.integers(len(score)),
    "half": lambda rng, score: rng.random(len(score)) < 0.5,
}


@pytest.mark.parametrize("method", ["hierarchical", "beta", "platt", "temperature"])
@given(
    seed=st.integers(0, 2**32 - 1),
    classes=st.lists(
        st.tuples(
            st.sampled_from([0, 1, 2, 10, 300, 2000]),
            st.sampled_from(sorted(SCORES)),
            st.sampled_from(sorted(LABELS)),
            st.sampled_from("rcf-"),
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_no_input_is_too_odd(
    method: str, seed: int, classes: list[tuple[int, str, str, str]]
) -> None:
    rng = np.random.default_rng(seed)
    parts: list[Rows] = []
    for count, scores, labels, _ in classes:
        score = SCORES[scores](rng, count) if count else np.zeros(0)
        parts.append((score, LABELS[labels](rng, score) if count else np.zeros(0, dtype=bool)))
    samples = samples_of_classes(parts, "".join(letter for *_, letter in classes))
    for found in fit_classes(samples, Recipe.of(method)).maps:
        chance = found(AT)
        assert np.isfinite(chance).all()
        assert (np.diff(chance) >= 0).all()
        assert chance.min() >= 0
        assert chance.max() <= 1


@pytest.mark.parametrize("scores", sorted(SCORES))
@pytest.mark.parametrize("labels", sorted(LABELS))
def test_a_large_class_beside_small_ones(scores: str, labels: str) -> None:
    rng = np.random.default_rng(7)
    score = SCORES[scores](rng, 4_000)
    small = (np.array([0.3, 0.002]), np.array([True, False]))
    samples = samples_of_classes([(score, LABELS[labels](rng, score)), small, small], "frr")
    for found in fit_classes(samples, Recipe.of("hierarchical")).maps:
        assert np.isfinite(found(AT)).all()
