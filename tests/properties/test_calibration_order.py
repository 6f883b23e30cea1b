"""What calibration may do to the order of a class, and what a fit may depend on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from calibration.made_samples import FITS
from lvdet.calibration.maps import Lines, LogOdds, Steps
from lvdet.calibration.order import calibrated
from oracles.calibration_cases import random_class

#: The methods whose map never falls.
RISING = {name: FITS[name] for name in ("beta", "isotonic", "platt", "temperature", "identity")}
STEPS = {name: FITS[name] for name in ("histogram", "bbq-aic", "bbq-bic")}
#: Those whose likelihood knows no number of rows.
UNSCALED = ("histogram", "isotonic", "platt", "beta", "temperature")

seeds = st.integers(0, 100_000)
#: Any float32 in [0, 1], the smallest and neighbours included.
unit = st.floats(0, 1, width=32)
score_lists = st.lists(unit, min_size=1, max_size=60)


@st.composite
def classes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Falling scores that a float32 can hold, with labels: any, or many that look like some."""
    if draw(st.booleans()):
        score, right = random_class(draw(seeds), sizes=(1, 2000), on_edges=True)
        return score.astype(np.float32).astype(np.float64), right
    score = -np.sort(-np.array(draw(score_lists), dtype=np.float64))
    labels = draw(st.lists(st.booleans(), min_size=len(score), max_size=len(score)))
    return score, np.array(labels)


def neighbourhood(values: list[float]) -> np.ndarray:
    """The values with the float32 just below and above each, inside [0, 1], rising, as float64."""
    middle = np.array(values, dtype=np.float32)
    around = [np.nextafter(middle, np.float32(end)) for end in (0, 1)]
    return np.unique(np.concatenate([middle, *around])).astype(np.float64)


def through_json(score: np.ndarray) -> np.ndarray:
    return np.array(json.loads(json.dumps(score.tolist())))


@given(rows=classes(), others=score_lists)
def test_scores_stay_in_strict_order(
    rows: tuple[np.ndarray, np.ndarray], others: list[float]
) -> None:
    at = neighbourhood([*others, *rows[0][:40].tolist()])
    for name, fit in RISING.items():
        fitted = fit(*rows)
        assert (np.diff(fitted(at)) >= -1e-15).all(), name
        new = calibrated(fitted, at)
        assert (np.diff(new) > 0).all(), name
        assert (np.diff(through_json(new)) > 0).all(), name


@given(rows=classes(), others=score_lists)
def test_inside_a_step_scores_stay_in_strict_order(
    rows: tuple[np.ndarray, np.ndarray], others: list[float]
) -> None:
    at = neighbourhood([*others, *rows[0][:40].tolist()])
    for name, fit in STEPS.items():
        fitted = fit(*rows)
        chance, new = fitted(at), calibrated(fitted, at)
        level = np.diff(chance) == 0
        assert (np.diff(new)[level] > 0).all(), name
        assert (np.diff(through_json(new))[level] > 0).all(), name
        # Nor does the spacing turn round two steps that differ by more than itself.
        apart = np.diff(chance) > 1e-6 * np.maximum(chance[1:], 1e-12) + 1e-12
        assert (np.diff(new)[apart] > 0).all(), name


@given(rows=classes(), others=score_lists)
def test_new_scores_are_the_chances_to_a_millionth(
    rows: tuple[np.ndarray, np.ndarray], others: list[float]
) -> None:
    at = np.concatenate([neighbourhood(others), rows[0]])
    for name, fit in FITS.items():
        fitted = fit(*rows)
        chance, new = fitted(at), calibrated(fitted, at)
        assert (np.abs(new - chance) <= 1e-6 * chance + 1e-12).all(), name
        assert ((new >= 0) & (new <= 1)).all(), name


@given(rows=classes(), others=score_lists, seed=seeds)
def test_a_score_depends_on_nothing_but_itself(
    rows: tuple[np.ndarray, np.ndarray], others: list[float], seed: int
) -> None:
    """Equal scores stay equal, in whatever order and company they come."""
    at = np.array([*others, *others, *rows[0].tolist()])
    order = np.random.default_rng(seed).permutation(len(at))
    for name, fit in FITS.items():
        fitted = fit(*rows)
        new = calibrated(fitted, at)
        assert new[order].tobytes() == calibrated(fitted, at[order]).tobytes(), name
        assert new[0] == calibrated(fitted, at[:1])[0], name
        for value in np.unique(at):
            assert len(np.unique(new[at == value])) == 1, name


def lines(rng: np.random.Generator, number: int) -> list[LogOdds]:
    """Of all slopes and offsets, nearly level ones included."""
    slopes = np.exp(rng.uniform(np.log(1e-18), np.log(1e5), (number, 2)))
    slopes[rng.random((number, 2)) < 0.1] = 0.0
    offset = rng.normal(0, 8, number)
    return [LogOdds(a, b, c) for (a, b), c in zip(slopes.tolist(), offset.tolist(), strict=True)]


def pieces(rng: np.random.Generator, number: int) -> list[Lines]:
    """Rising pieces between float32 scores, nearly level ones included."""
    found = []
    for _ in range(number):
        scores = np.unique(rng.random(rng.integers(1, 9)).astype(np.float32)).astype(np.float64)
        values = np.cumsum(np.exp(rng.uniform(np.log(1e-17), 0, len(scores))))
        found.append(Lines(scores, values / (values[-1] / rng.random())))
    return found


def test_all_neighbours_below_a_power_of_two_stay_apart() -> None:
    """There float32 scores are closest beside their size, and the spacing is least."""
    rng = np.random.default_rng(0)
    top = np.ldexp(np.float32(1), -rng.integers(0, 126, 40)).astype(np.float32)
    ladder = [top]
    for _ in range(40):
        ladder.append(np.nextafter(ladder[-1], np.float32(0)))
    at = np.unique(np.concatenate(ladder)).astype(np.float64)
    for score_map in [*lines(rng, 3000), *pieces(rng, 1000)]:
        assert (np.diff(calibrated(score_map, at)) > 0).all(), score_map


def test_all_values_of_a_step_leave_room() -> None:
    rng = np.random.default_rng(1)
    at = neighbourhood([0.0, 1e-45, 2e-38, 1e-9, 0.05, 0.5, 0.75, 1.0])
    for value in [0.0, 1e-300, 2.0**-40, 1e-9, *rng.random(3000).tolist(), 1.0]:
        new = calibrated(Steps(np.zeros(0), np.array([value])), at)
        assert (np.diff(new) > 0).all(), value


@pytest.mark.parametrize("ending", ["json", "jsonl", "parquet"])
def test_order_survives_a_file(ending: str, tmp_path: Path) -> None:
    _, dt = lvdet.simulate(images=20, classes=3, dets_per_image=None, seed=1)
    score = neighbourhood(np.linspace(0.0, 1.0, len(dt) // 3).tolist())[: len(dt)]
    dt = dt[: len(score)]
    for name, fit in RISING.items():
        fitted = fit(*random_class(5, sizes=(100, 500)))
        new = calibrated(fitted, score)
        path = tmp_path / f"{name}.{ending}"
        lvdet.write_detections(dt.with_scores(new), path)
        read = lvdet.read_detections(path).score
        assert read.tobytes() == new.tobytes(), name
        assert (np.diff(read) > 0).all(), name


# --- what a fit depends on ---


@given(rows=classes(), seed=seeds)
def test_the_order_of_equal_scores_changes_no_fit(
    rows: tuple[np.ndarray, np.ndarray], seed: int
) -> None:
    score, right = rows
    order = np.lexsort((np.random.default_rng(seed).random(len(score)), -score))
    assert score[order].tobytes() == score.tobytes()
    for name, fit in FITS.items():
        first, second = fit(score, right)(score), fit(score, right[order])(score)
        if name in ("histogram", "bbq-aic", "bbq-bic", "isotonic", "identity"):
            assert first.tobytes() == second.tobytes(), name
        else:  # sums in another order
            assert second == pytest.approx(first, abs=1e-7), name


@given(rows=classes(), times=st.integers(2, 4))
def test_every_row_several_times_is_the_same_fit(
    rows: tuple[np.ndarray, np.ndarray], times: int
) -> None:
    score, right = rows
    more = np.repeat(score, times), np.repeat(right, times)
    for name in UNSCALED:
        first, second = FITS[name](score, right)(score), FITS[name](*more)(score)
        assert second == pytest.approx(first, abs=1e-7), name
