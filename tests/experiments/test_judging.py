"""Verdicts: intervals equal scipy's, and verdicts follow the rule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from experiments.made_results import made, own
from lvdet.comparison.run_spread import pooled_deviation
from lvdet.experiments.claims import Claim
from lvdet.experiments.judging import (
    FAILS,
    HOLDS,
    MISSING,
    UNDECIDED,
    Interval,
    decide,
    judge,
)
from lvdet.experiments.result_files import ResultSet
from lvdet.experiments.run_graph import FIRST_PILOT

CAS = Claim(
    "cas", "ap_fixed_samplers", "", {"own/old.AP": 1.0}, {"cas": 1.0, "uniform": -1.0}, sign=1
)
POINTS = st.lists(st.integers(10, 40), min_size=2, max_size=5, unique=True)


def results(**values: Sequence[float]) -> ResultSet:
    return ResultSet(
        made(name, seed, own(old_AP=value))
        for name, column in values.items()
        for seed, value in enumerate(column)
    )


@given(POINTS, POINTS)
def test_the_interval_of_two_configs_is_student_s(one: list[int], other: list[int]) -> None:
    verdict = judge(CAS, results(cas=one, uniform=other))
    test = stats.ttest_ind(np.array(one) / 100, np.array(other) / 100, equal_var=True)
    expected = test.confidence_interval(0.95)
    assert verdict.by_seeds is not None
    assert verdict.freedom == len(one) + len(other) - 2
    assert verdict.by_seeds.low == pytest.approx(expected.low, abs=1e-9)
    assert verdict.by_seeds.high == pytest.approx(expected.high, abs=1e-9)
    if abs(test.pvalue - 0.05) > 1e-6 and not np.isnan(test.pvalue):
        significant = bool(test.pvalue < 0.05)
        sign = np.mean(one) > np.mean(other)
        assert verdict.outcome == ((HOLDS if sign else FAILS) if significant else UNDECIDED)


@given(POINTS)
def test_the_interval_of_one_config_is_student_s(column: list[int]) -> None:
    """Of two conditions of the same runs: the differences are one sample."""
    claim = Claim("", "ap_fixed_samplers", "", {"own/old.AP": 1, "own/fixed.AP": -1}, {"cas": 1}, 1)
    rows = [made("cas", s, own(old_AP=v, fixed_AP=20)) for s, v in enumerate(column)]
    verdict = judge(claim, ResultSet(rows))
    differences = [(value - 20) / 100 for value in column]
    expected = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert verdict.by_seeds is not None
    assert verdict.by_seeds.low == pytest.approx(expected.low, abs=1e-9)
    assert verdict.by_seeds.high == pytest.approx(expected.high, abs=1e-9)


def test_other_configs_of_the_experiment_lend_their_deviation() -> None:
    """With the third sampler, the degrees of freedom and the deviation of an analysis of
    variance."""
    columns = {"cas": [20.0, 21.0], "uniform": [18.0, 18.5], "baseline": [22.0, 23.0, 25.0]}
    verdict = judge(CAS, results(**columns))
    groups = [np.array(column) / 100 for column in columns.values()]
    squares = sum(((group - group.mean()) ** 2).sum() for group in groups)
    assert verdict.freedom == 4
    assert verdict.deviation == pytest.approx(np.sqrt(squares / 4))
    reach = stats.t.ppf(0.975, 4) * np.sqrt(squares / 4) * np.sqrt(1 / 2 + 1 / 2)
    assert verdict.by_seeds is not None
    assert verdict.effect == pytest.approx(0.0225)
    assert verdict.by_seeds.high - verdict.by_seeds.low == pytest.approx(2 * reach)


@given(st.lists(st.lists(st.floats(-1, 1), max_size=4), max_size=5))
def test_a_pooled_deviation(groups: list[list[float]]) -> None:
    deviation, freedom = pooled_deviation(groups)
    filled = [group for group in groups if group]
    assert freedom == sum(map(len, filled)) - len(filled)
    if freedom:
        weighed = sum((len(g) - 1) * np.var(g, ddof=1) for g in filled if len(g) > 1)
        assert deviation == pytest.approx(np.sqrt(weighed / freedom), abs=1e-12)
    else:
        assert np.isnan(deviation)


def test_one_seed_never_decides() -> None:
    verdict = judge(CAS, results(cas=[30.0], uniform=[10.0, 10.1, 10.2]))
    assert verdict.outcome == UNDECIDED
    assert verdict.effect == pytest.approx(0.199)
    assert verdict.by_seeds is None


def test_what_was_not_run_is_said() -> None:
    assert judge(CAS, results(cas=[30.0, 31.0])).outcome == MISSING


def test_pilots_do_not_count() -> None:
    rows = results(cas=[30.0, 30.1], uniform=[10.0, 10.1])
    before = judge(CAS, rows)
    rows.add(made("cas", FIRST_PILOT, own(old_AP=0)))
    assert judge(CAS, rows) == before
    assert before.outcome == HOLDS


@pytest.mark.parametrize(
    ("drawn", "outcome"), [(0.2, HOLDS), (0.0, UNDECIDED)], ids=["agrees", "does not"]
)
def test_the_bootstrap_has_to_agree(drawn: float, outcome: str) -> None:
    """Samples lie around the effect, or so far from it that 0 is in their interval."""
    near = np.random.default_rng(0).normal(0, 0.001, 50)
    rows = ResultSet(
        made(name, seed, own(old_AP=value), resamples={"own": {"old.AP": drawn_values}})
        for name, value, drawn_values in (
            ("cas", 30.0, (0.1 + drawn + near).tolist()),
            ("uniform", 10.0, [0.1] * 50),
        )
        for seed in range(3)
    )
    verdict = judge(CAS, rows)
    assert verdict.by_images is not None
    error = np.sqrt(np.mean((drawn + near - 0.2) ** 2))
    assert verdict.by_images.high == pytest.approx(0.2 + stats.norm.ppf(0.975) * error)
    assert verdict.outcome == outcome


@given(st.floats(-5, 5), st.floats(0, 5), st.floats(-2, 2))
def test_the_other_sign_is_the_other_verdict(low: float, wide: float, bound: float) -> None:
    interval = Interval(low / 100, (low + wide) / 100)
    more = decide(Claim("", "", "", {}, {}, sign=1, bound=bound), interval)
    less = decide(Claim("", "", "", {}, {}, sign=-1, bound=bound), interval)
    assert less == {HOLDS: FAILS, FAILS: HOLDS, UNDECIDED: UNDECIDED}[more]
    if more == HOLDS:
        assert low > bound - 1e-9


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(-0.5, 0.9, HOLDS), (-0.5, 1.1, UNDECIDED), (1.1, 2, FAILS), (-3, -1.2, FAILS)],
)
def test_a_small_effect(low: float, high: float, outcome: str) -> None:
    claim = Claim("", "", "", {}, {}, margin=1.0)
    assert decide(claim, Interval(low / 100, high / 100)) == outcome
