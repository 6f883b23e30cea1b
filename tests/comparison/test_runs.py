"""Several trainings of each detector: numbers are means, intervals the wider of two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import lvdet
from lvdet.comparison.bootstrap import Resampler, draw
from lvdet.comparison.run_spread import run_errors, student
from lvdet.errors import InputError
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.summary import NAMES, PROTOCOLS
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.limits.needs import everything
from lvdet.matching.match_options import MatchOptions

BUDGETS = {"dets_per_image": 15, "dets_per_class": 40}
OPTIONS: dict[str, Any] = {"resamples": 100, **BUDGETS}
RUNS = 3


@pytest.fixture(scope="module")
def made() -> tuple[lvdet.GroundTruth, list[lvdet.Detections]]:
    """One set, three runs of each of two detectors, the second better and less even."""
    found = []
    for detector in (0.5, 0.7):
        for run in range(RUNS):
            gt, dt = lvdet.simulate(
                60, 10, seed=1, dets_per_image=40, localisation=detector + 0.2 * (run - 1)
            )
            found.append(dt)
    return gt, found


@pytest.mark.parametrize("freedom", [*range(1, 20), 59, 60, 999, 1000])
def test_student_is_scipy_s(freedom: int) -> None:
    for confidence in (0.5, 0.8, 0.95, 0.999):
        expected = stats.t.ppf((1 + confidence) / 2, freedom)
        assert student(freedom, confidence) == pytest.approx(expected, rel=1e-11)


def test_the_wider_of_two_intervals(
    made: tuple[lvdet.GroundTruth, list[lvdet.Detections]],
) -> None:
    """That over runs is scipy's of two samples, that over images of means on the same samples."""
    gt, found = made
    one = lvdet.compare(gt, found, runs=RUNS, **OPTIONS).compared[0]
    values = [lvdet.evaluate(gt, dt, **BUDGETS) for dt in found]
    drawn = []
    for dt in found:
        pair = load_pair(gt, dt, everything, MatchOptions("bbox"))
        resampler = Resampler(pair, old=PerImage(15), fixed=PerClass(40))
        weights = draw(len(gt.images), 0, 100, seed=0)
        drawn.append(resampler.values(weights).metrics(gt.categories)[:100])
    wider = 0
    for row, protocol in enumerate(PROTOCOLS):
        for column, name in enumerate(NAMES):
            item = one.protocols[protocol][name]
            numbers = np.array([value[protocol][name] for value in values])
            first, second = numbers[:RUNS], numbers[RUNS:]
            if np.isnan(item.low):
                continue
            assert item.baseline == pytest.approx(first.mean())
            assert item.value == pytest.approx(second.mean())
            over_runs = stats.ttest_ind(second, first).confidence_interval(0.95)
            sides = np.array(drawn)[:, :, row, column].reshape(2, RUNS, -1).mean(axis=1)
            away = sides[1] - sides[0] - item.delta
            over_images = stats.norm.ppf(0.975) * np.sqrt(np.nanmean(away**2))
            half = max((over_runs.high - over_runs.low) / 2, over_images)
            assert item.high - item.delta == pytest.approx(half)
            assert item.delta - item.low == pytest.approx(half)
            wider += (over_runs.high - over_runs.low) / 2 > over_images
    assert wider > 0  # else nothing of runs was tested


def test_runs_that_do_not_differ_change_nothing(
    made: tuple[lvdet.GroundTruth, list[lvdet.Detections]],
) -> None:
    gt, found = made
    a, b = found[0], found[-1]
    once = lvdet.compare(gt, [a, b], **OPTIONS).to_dict()
    twice = lvdet.compare(gt, [a, a, b, b], runs=2, names=["a", "b"], **OPTIONS)
    assert twice.names == ("a", "b")
    assert ", 2 runs of each, on 60 images" in twice.title()
    assert twice.inputs["runs"] == 2
    for was, now in zip(once["comparisons"], twice.to_dict()["comparisons"], strict=True):
        for protocol, metrics in was["protocols"].items():
            for name, item in metrics.items():
                other = now["protocols"][protocol][name]
                assert other == {k: v if v is None else pytest.approx(v) for k, v in item.items()}
        held = [[one["holds"] for one in side["classes"]] for side in (was, now)]
        assert held[0] == held[1]


@pytest.mark.parametrize(
    ("count", "runs", "says"),
    [
        (2, 0, "runs is 0, expected an integer of at least 1"),
        (3, 2, "3 results to compare, expected at least 4"),
        (5, 2, "5 results to compare, expected a multiple of 2 runs"),
    ],
)
def test_other_numbers_of_results_are_refused(
    made: tuple[lvdet.GroundTruth, list[lvdet.Detections]], count: int, runs: int, says: str
) -> None:
    gt, found = made
    with pytest.raises(InputError, match=says):
        lvdet.compare(gt, found[:count], runs=runs, **OPTIONS)


def test_one_run_has_no_spread() -> None:
    assert not run_errors(np.arange(6.0).reshape(2, 1, 3), 0.95).any()
