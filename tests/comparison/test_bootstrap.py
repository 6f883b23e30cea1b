"""Drawn sets by weights against drawn sets that are really made and evaluated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lvdet
from comparison.drawn_sets import drawn_detections, drawn_truth
from lvdet.comparison.bootstrap import LANES, Drawn, Resampler, as_it_is, draw
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.summary import NAMES, PROTOCOLS
from lvdet.limits.budgets import Budget, PerClass, PerImage, PerImageClass, apply
from lvdet.matching.match_options import MatchOptions
from oracles.cases import coco_case, lvis_case
from tabled import TOLERANCE, read_case

IMAGES = 30
SETS = 20


def made(seed: int, style: str) -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    """A set with ignored objects and without ties; class 0 has no objects, class 1 only ignored
    ones, class 2 no detections."""
    gt, dt = lvdet.simulate(IMAGES, 12, seed=seed, dets_per_image=60, style=style)
    rng = np.random.default_rng(seed)
    dt = dt.with_scores(rng.permutation(np.linspace(0.001, 0.999, len(dt))))
    hidden = (rng.random(len(gt)) < 0.1) | (gt.category == 1)
    gt = replace(gt, ignore=hidden) if gt.federated else replace(gt, crowd=hidden)
    gt = gt.where(gt.category != 0)
    return gt, dt[dt.category_ids[dt.category] != gt.categories.ids[2]]


def resampler(pair: Pair, old: Budget, cap: int) -> Resampler:
    return Resampler(pair, old=old, fixed=PerClass(cap))


def evaluated(
    gt: lvdet.GroundTruth, dt: lvdet.Detections, old: Budget, cap: int
) -> lvdet.Evaluation:
    """The set as it is under all protocols; AP-Old uses the rows that its budget leaves."""
    result = lvdet.evaluate(gt, dt, dets_per_class=cap)
    keep = apply([old], dt)
    left = dt if keep is None else dt[keep]
    unlimited = lvdet.evaluate(gt, left, dets_per_class=10**9, protocols=["fixed"])
    result.protocols["old"] = replace(unlimited["fixed"], name="old")
    return result


def assert_same(drawn: Drawn, place: int, result: lvdet.Evaluation) -> None:
    metrics = drawn.metrics(result.categories)[place]
    for row, protocol in enumerate(PROTOCOLS):
        expected = [result[protocol][name] for name in NAMES]
        np.testing.assert_allclose(metrics[row], expected, rtol=0, atol=TOLERANCE)
    for protocol, values in (("old", drawn.old), ("fixed", drawn.fixed)):
        expected = result.per_class[f"{protocol}.AP"]
        np.testing.assert_allclose(values[place], expected, rtol=0, atol=TOLERANCE)


def weight_of(weights: np.ndarray, number: int) -> np.ndarray:
    return weights[number // LANES, :, number % LANES]


@pytest.mark.parametrize("cap", [0, 1, 25, 100, 10_000])
@pytest.mark.parametrize(
    ("style", "old"), [("lvis", PerImage(20)), ("lvis", PerImage(300)), ("coco", PerImageClass(2))]
)
def test_a_drawn_set_is_the_set_that_is_drawn(style: str, old: Budget, cap: int) -> None:
    gt, dt = made(cap, style)
    weights = draw(IMAGES, 3, SETS, seed=cap)
    drawn = resampler(load_pair(gt, dt, None), old, cap).values(weights)
    for number in range(SETS):
        images = np.repeat(np.arange(IMAGES), weight_of(weights, number))
        tables = drawn_truth(gt, images), drawn_detections(gt, dt, images)
        assert_same(drawn, number, evaluated(*tables, old, cap))


def test_the_cut_falls_inside_the_copies_of_an_image() -> None:
    """In some set a class's budget ends between two copies of one row."""
    gt, dt = made(7, "lvis")
    weights = draw(IMAGES, 0, SETS, seed=7)
    places = np.searchsorted(gt.images.ids, dt.image_ids)[dt.image]
    split = 0
    for number in range(SETS):
        for category in np.unique(dt.category):
            rows = np.flatnonzero(dt.category == category)
            rows = rows[np.argsort(-dt.score[rows])]
            sums = np.cumsum(weight_of(weights, number)[places[rows]].astype(int))
            split += bool(sums[-1] > 25 and 25 not in sums)
    assert split > 20


@pytest.mark.parametrize("cap", [3, 10_000])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_the_set_itself_is_evaluated_ties_included(
    seed: int, exact: bool, cap: int, tmp_path: Path
) -> None:
    """Weights of 1 are `evaluate`, on the parity tests' cases: in one set beside empty ones, and in
    all sets of a block, which then need no row behind those in the class budget."""
    make = coco_case if seed % 3 == 0 else lvis_case
    gt, dt = read_case(*make(seed, False), tmp_path)
    if not np.isin(dt.category_ids, gt.categories.ids).any():
        return
    old: Budget = PerImage(5)
    pair = load_pair(gt, dt, None, MatchOptions(exact_lvis=exact))
    result = lvdet.evaluate(gt, dt, dets_per_image=5, dets_per_class=cap, exact_lvis=exact)
    alone = as_it_is(len(gt.images))
    for weights in (alone, np.ones_like(alone)):
        drawn = resampler(pair, old, cap).values(weights)
        assert_same(drawn, 0, result)


def test_no_detections() -> None:
    gt, dt = made(1, "lvis")
    weights = draw(IMAGES, 0, SETS, seed=1)
    nothing = dt[np.zeros(len(dt), dtype=bool)]
    drawn = resampler(load_pair(gt, nothing, None), PerImage(300), 10).values(weights)
    metrics = drawn.metrics(gt.categories)[:SETS]
    assert set(np.unique(metrics[~np.isnan(metrics)])) == {0.0}
    assert (metrics[:, :, 0] == 0).all()


def test_sets_are_the_same_however_they_are_drawn_together() -> None:
    whole = draw(IMAGES, 0, 50, seed=4)
    for first in (0, 7, 33):
        part = draw(IMAGES, first, 17, seed=4)
        for number in range(17):
            assert (weight_of(part, number) == weight_of(whole, first + number)).all()
    assert (weight_of(whole, 49).sum(), weight_of(whole, 50).sum()) == (IMAGES, 0)
    assert (draw(IMAGES, 0, 50, seed=5) != whole).any()
