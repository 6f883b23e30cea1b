"""What need not be read: caps keep everything that a budget keeps, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

import lvdet
from lvdet.files.collect import Cap
from lvdet.limits import needs
from lvdet.limits.needs import Need, caps_of, everything
from lvdet.tables.ground_truth import GroundTruth


def truth() -> GroundTruth:
    """7 images, 4 classes."""
    return lvdet.simulate(images=7, classes=4, dets_per_image=5, seed=1)[0]


def rows(*classes: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(classes, dtype=np.int64)


def shown(caps: list[Cap]) -> list[tuple[bool, int, list[int], int, int]]:
    return [(cap.by_image, cap.limit, cap.part.tolist(), cap.parts, cap.others) for cap in caps]


def test_a_need_of_everything_has_no_cap() -> None:
    gt = truth()
    assert caps_of(everything(gt), gt, unknown=False) == []
    some = Need(lvdet.PerImage(3), rows(0, 1))
    assert caps_of([some, *everything(gt)], gt, unknown=False) == []


@pytest.mark.parametrize("unknown", [False, True])
def test_images_are_parted_by_the_classes_that_are_needed_together(unknown: bool) -> None:
    """Classes 0 and 2 are in both needs, 3 in one and 1 in none; unknown classes are a part more,
    which comes last."""
    both = [Need(lvdet.PerImage(5), rows(0, 2, 3)), Need(lvdet.PerImage(9), rows(0, 2))]
    (cap,) = shown(caps_of(both, truth(), unknown=unknown))
    assert cap == (True, 9, [0, -1, 0, 1], 3 if unknown else 2, 2 if unknown else -1)


@pytest.mark.parametrize("unknown", [False, True])
def test_each_class_is_a_part_under_a_limit_per_class(unknown: bool) -> None:
    (cap,) = shown(caps_of([Need(lvdet.PerClass(8), rows(1, 3))], truth(), unknown=unknown))
    assert cap == (False, 8, [-1, 1, -1, 3], 4, 0 if unknown else -1)
    (cap,) = shown(caps_of([Need(lvdet.PerImageClass(8), rows(1, 3))], truth(), unknown=unknown))
    assert cap == (True, 8, [-1, 1, -1, 3], 4, -1)


def test_kinds_of_limits_have_a_cap_each() -> None:
    kinds = [Need(kind(4), rows(0)) for kind in (lvdet.PerImage, lvdet.PerClass)]
    assert [cap.by_image for cap in caps_of(kinds, truth(), unknown=False)] == [False, True]


def test_no_class_is_needed() -> None:
    """One part still, which no class is in."""
    (cap,) = shown(caps_of([Need(lvdet.PerImage(5), rows())], truth(), unknown=False))
    assert cap == (True, 5, [-1, -1, -1, -1], 1, -1)


def test_too_many_groups_to_tell_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """7 images of 4 classes are 28 groups: one fewer, and all rows are kept."""
    need = [Need(lvdet.PerImageClass(2), rows(0, 1, 2, 3))]
    monkeypatch.setattr(needs, "_MOST_GROUPS", 28)
    assert len(caps_of(need, truth(), unknown=False)) == 1
    monkeypatch.setattr(needs, "_MOST_GROUPS", 27)
    assert caps_of(need, truth(), unknown=False) == []
    of_class = [Need(lvdet.PerClass(2), rows(0, 1, 2, 3))]
    assert len(caps_of(of_class, truth(), unknown=False)) == 1
