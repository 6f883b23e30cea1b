"""Budgets as text: one canonical form, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lvdet import InputError, PerClass, PerImage, PerImageClass
from lvdet.limits.budgets import Budget, describe, parse_budget

kinds = st.sampled_from([PerImage, PerClass, PerImageClass])
chains = st.lists(st.builds(lambda kind, n: kind(n), kinds, st.integers(0, 10**17)), min_size=1)


@given(chain=chains)
def test_a_text_names_the_budgets_it_was_written_for(chain: list[Budget]) -> None:
    assert parse_budget(describe(chain)) == tuple(chain)


def test_the_canonical_form() -> None:
    chain = parse_budget(" 1000/image , 10000/class")
    assert chain == (PerImage(1000), PerClass(10_000))
    assert describe(chain) == "1000/image,10000/class"
    assert parse_budget("300/image/class") == (PerImageClass(300),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",",
        "300",
        "300/image,",
        "1,000/image",
        "-1/image",
        "1.5/class",
        "300/images",
        "300/class/image",
        "300 /image",
        "٣/image",
        "9999999999999999999/image",
        "inf/image",
    ],
)
def test_other_texts_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(InputError, match="expected limits joined by commas") as caught:
        parse_budget(text)
    assert repr(text) in str(caught.value)
    assert "\n" not in str(caught.value)
