"""The toy example of the paper, against its formula."""

from __future__ import annotations

import json

import pytest

from lvdet.studies.toy_example import toy


def test_numbers_are_those_of_the_formula() -> None:
    first, second, unlimited = toy().rows
    assert first.kept == ("A1", "A2")
    assert second.kept == ("A1", "B1")
    assert unlimited.kept == ("A1", "A2", "B1")
    assert (first.a, first.b, first.overall) == pytest.approx((1, 0, 0.5), abs=1e-12)
    # Half the recall is reached at 51 of 101 points.
    half = 51 / 101
    assert (second.a, second.b) == pytest.approx((half, 0.8), abs=1e-12)
    assert second.overall == pytest.approx((half + 0.8) / 2, abs=1e-12)
    assert (unlimited.a, unlimited.b) == pytest.approx((1, 0.8), abs=1e-12)
    assert unlimited.overall == pytest.approx(0.9, abs=1e-12)


def test_the_page_says_where_the_paper_differs() -> None:
    page = str(toy())
    for text in ("0.5000", "0.6525", "0.9000", "0.65", "0.75", "51/101", "A1, B1"):
        assert text in page
    assert json.loads(json.dumps(toy().to_dict()))["rows"][1]["AP_in_the_paper"] == 0.65
