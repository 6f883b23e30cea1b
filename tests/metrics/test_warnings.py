"""When a file counts as cut before it came."""

from __future__ import annotations

import numpy as np
import pytest

import lvdet
from lvdet.metrics.warnings import image_cut


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([300, 300, 12], (300, 2)),
        ([300, 12], (300, 1)),
        ([100] * 3 + [7], (100, 3)),
        ([77] * 6 + [5, 9], (77, 6)),
        ([77] * 6 + [76] * 6, None),  # no step at the top
        ([77] * 4, None),  # too few to say
        ([301, 300, 300], None),
        ([1] * 50, None),
        ([], None),
    ],
)
def test_image_cut(counts: list[int], expected: tuple[int, int] | None) -> None:
    assert image_cut(np.array(counts, dtype=np.int64)) == expected


def test_a_cut_file_makes_ap_fixed_a_lower_bound() -> None:
    gt, dt = lvdet.simulate(images=30, classes=400, dets_per_image=300, seed=1)
    text = " ".join(lvdet.evaluate(gt, dt).warnings)
    assert "cut at 300" in text
    assert "lower bound" in text
    assert "AP-Fixed and AP-Pool are" in text
    only_old = lvdet.evaluate(gt, dt, protocol=["old"])
    assert not only_old.warnings


def test_ap_old_above_the_cut_is_a_lower_bound_too() -> None:
    gt, dt = lvdet.simulate(images=30, classes=400, dets_per_image=300, seed=1)
    text = " ".join(lvdet.evaluate(gt, dt, protocol="old", dets_per_image=1000).warnings)
    assert "AP-Old is only a lower bound" in text


def test_some_classes_of_a_cut_file_are_a_lower_bound_too() -> None:
    """The cut counted all classes: of these alone it might have left more."""
    gt, dt = lvdet.simulate(images=30, classes=400, dets_per_image=300, seed=1)
    text = " ".join(lvdet.evaluate(gt, dt, protocol="old", classes="rc").warnings)
    assert "AP-Old is only a lower bound" in text
