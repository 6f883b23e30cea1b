"""Isotonic regression and the sigmoid, which are lvdet's own, against scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.special import expit as scipy_expit

from lvdet import _native
from lvdet.calibration.maps import expit

GROUPS = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=60)


@given(GROUPS)
def test_shares_are_those_of_scipy(groups: list[tuple[int, int]]) -> None:
    right, count = np.array([(min(one), one[1]) for one in groups], dtype=np.float64).T.copy()
    fitted = _native.fit_isotonic(right, count)
    np.testing.assert_allclose(
        fitted, isotonic_regression(right / count, weights=count).x, rtol=1e-13
    )
    assert (np.diff(fitted) >= 0).all()
    assert fitted @ count == pytest.approx(right.sum())  # a fit keeps the total


def test_none_at_all() -> None:
    assert len(_native.fit_isotonic(np.zeros(0), np.zeros(0))) == 0


def test_the_sigmoid_is_scipy_s() -> None:
    value = np.array([-np.inf, -1e9, -745, -40, -1.5, -0.0, 1e-300, 3, 40, 1e9, np.inf])
    np.testing.assert_allclose(expit(value), scipy_expit(value), rtol=1e-15, atol=1e-300)
