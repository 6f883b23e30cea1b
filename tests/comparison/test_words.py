"""The sentences on AP-Old beside AP-Fixed, case by case, from intervals alone."""

from __future__ import annotations

import pytest

from lvdet.comparison.differences import Difference
from lvdet.comparison.verdicts import sentences


def difference(delta: float, low: float, high: float) -> Difference:
    """In points: of a baseline of 20."""
    return Difference(0.2, 0.2 + delta / 100, 0.01, low / 100, high / 100)


HOLDS_UP, HOLDS_DOWN = difference(1.5, 1.0, 2.0), difference(-1.5, -2.0, -1.0)
UNSURE, NOTHING = difference(1.2, -0.1, 2.5), difference(0.05, -0.2, 0.3)


@pytest.mark.parametrize(
    ("old", "fixed", "beyond", "says"),
    [
        (HOLDS_UP, NOTHING, difference(1.45, 1.0, 1.9), "The gain of B under AP-Old vanishes"),
        # A difference that does not hold is not one that is gone.
        (HOLDS_UP, UNSURE, difference(0.3, -0.5, 1.1), "The gain of B under AP-Old is uncertain"),
        (HOLDS_DOWN, NOTHING, difference(-1.55, -2, -1), "The loss of B under AP-Old vanishes"),
        (HOLDS_DOWN, NOTHING, difference(0.3, 0.1, 0.5), "The loss of B under AP-Old is uncertain"),
        (HOLDS_UP, HOLDS_DOWN, difference(3, 2, 4), "reverses under AP-Fixed, where B is worse"),
        (HOLDS_DOWN, HOLDS_UP, difference(-3, -4, -2), "under AP-Fixed, where B is better than A"),
        (HOLDS_UP, HOLDS_UP, difference(0, -1, 1), "holds under both AP-Old and AP-Fixed."),
        (
            HOLDS_UP,
            difference(0.5, 0.2, 0.8),
            difference(1.0, 0.5, 1.5),
            "but is smaller under AP-Fixed: +0.50 instead of +1.50.",
        ),
        (
            HOLDS_DOWN,
            difference(-3.5, -4, -3),
            difference(2.0, 1.5, 2.5),
            "and is larger under AP-Fixed: -3.50 instead of -1.50.",
        ),
        (NOTHING, HOLDS_UP, difference(-1.45, -2, -1), "under AP-Fixed does not show under AP-Old"),
        (NOTHING, HOLDS_UP, difference(-1.45, -4, 1), "AP-Fixed but is uncertain under AP-Old"),
        (NOTHING, UNSURE, difference(0, -1, 1), None),
    ],
)
def test_old_and_fixed(
    old: Difference, fixed: Difference, beyond: Difference, says: str | None
) -> None:
    protocols = {"old": {"AP": old}, "fixed": {"AP": fixed}}
    budgets = {"old": "300/image", "fixed": "10000/class"}
    *_, said, _ = ["", *sentences("A", "B", protocols, beyond, budgets, [], (), 0.95)]
    if says is None:
        assert said.startswith("AP-Fixed (10000/class): no significant difference")
    else:
        assert says in said
