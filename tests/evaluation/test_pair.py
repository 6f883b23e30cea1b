"""The engine: what is taken from the one match is what matching anew gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import lvdet
from lvdet import _native
from lvdet.diagnosis.diagnose import evaluate_and_diagnose
from lvdet.errors import InputError
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import Plan, evaluate_pair
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.matching.match import match, to_be_found
from lvdet.matching.match_options import MatchOptions
from lvdet.simulation.simulate import simulate
from match_bytes import match_bytes

cases = st.tuples(st.integers(0, 10_000), st.sampled_from([2, 7, 1_000_000]), st.booleans())


def made(case: tuple[int, int, bool]) -> Pair:
    """A pair with few levels of score, so that there are ties, and partners."""
    seed, levels, coco = case
    gt, dt = simulate(12, 6, dets_per_image=40, style="coco" if coco else "lvis", seed=seed)
    dt = dt[np.random.default_rng(seed).permutation(len(dt))]  # so that the file decides ties
    dt = dt.with_scores(np.ceil(dt.score * levels) / levels)
    return load_pair(gt, dt, None, MatchOptions("bbox", partners_at=0.5))


def anew(pair: Pair) -> Pair:
    return Pair(pair.gt, pair.results, pair.options)


@given(case=cases, limit=st.integers(0, 30))
def test_the_best_of_each_class_need_no_match(case: tuple[int, int, bool], limit: int) -> None:
    pair = made(case)
    assert len(pair.matches)
    keep = pair.kept([PerClass(limit)])
    part = pair if keep is None else pair.where(keep)
    assert match_bytes(part.matches) == match_bytes(anew(part).matches)


@given(case=cases, power=st.sampled_from([0.3, 1.0, 2.5]), levels=st.sampled_from([3, 1_000_000]))
def test_scores_that_keep_the_order_need_no_match(
    case: tuple[int, int, bool], power: float, levels: int
) -> None:
    """Rising maps of each class by itself; with few levels, ties come up that the file decides."""
    pair = made(case)
    ranking = pair.results.ranking
    scale = np.random.default_rng(case[0]).uniform(0.2, 1.0, len(ranking.category_ids))
    score = np.ceil(ranking.score**power * levels) / levels * scale[ranking.category]
    after = pair.with_scores(score)
    assert match_bytes(after.matches) == match_bytes(anew(after).matches)
    every = pair.every_class
    for budgets in ([], [PerImage(7)], [PerClass(9)]):
        assert repr(after.average(budgets, every)) == repr(anew(after).average(budgets, every))
        assert repr(after.pooled(budgets, every)) == repr(anew(after).pooled(budgets, every))


@given(case=cases)
def test_any_scores_are_matched_where_they_must_be(case: tuple[int, int, bool]) -> None:
    pair = made(case)
    score = np.random.default_rng(case[0]).permutation(pair.results.ranking.score)
    after = pair.with_scores(score)
    assert match_bytes(after.matches) == match_bytes(anew(after).matches)


@given(case=cases)
def test_some_images_are_a_mask(case: tuple[int, int, bool]) -> None:
    """As where annotations and detections of the other images are not there."""
    pair = made(case)
    images = np.random.default_rng(case[0]).random(len(pair.gt.images)) < 0.5
    gt, ranking = pair.gt, pair.results.ranking
    there = images[np.searchsorted(gt.images.ids, ranking.image_ids)][ranking.image]
    alone = Pair(gt.where(images[gt.image]), pair.results.where(there), pair.options)
    every = pair.every_class
    assert repr(pair.average([], every, images=images)) == repr(alone.average([], every))
    assert repr(pair.pooled([], every, images=images)) == repr(alone.pooled([], every))


def test_all_images_are_all_images_where_lvis_leaves_annotations_out() -> None:
    """lvis takes no annotation of area 0."""
    gt, dt = simulate(12, 6, dets_per_image=40, seed=1)
    area = gt.area.copy()
    area[:3] = 0
    pair = load_pair(replace(gt, area=area), dt, None, MatchOptions("bbox", exact_lvis=True))
    every, images = pair.every_class, np.ones(len(gt.images), dtype=bool)
    assert repr(pair.average([], every, images=images)) == repr(pair.average([], every))


def test_groups_of_one_name_with_other_classes() -> None:
    pair = made((3, 1_000_000, False))
    names = pair.gt.categories.names
    for members in (names[:2], names[2:4]):
        plan = Plan(groups={"novel": members})
        told, alone = (evaluate_pair(one, plan).protocols["pool"] for one in (pair, anew(pair)))
        assert repr(told.metrics) == repr(alone.metrics)


def test_partners_at_another_threshold_are_refused() -> None:
    gt, dt = simulate(3, 3, seed=0)
    with pytest.raises(lvdet.InputError, match="not among the thresholds"):
        match(gt, dt, MatchOptions("bbox", [0.75], partners_at=0.5))


@pytest.fixture
def matched(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often something was matched since it was asked last."""
    calls: list[None] = []
    native = _native.match

    def counting(*args: Any) -> Any:
        calls.append(None)
        return native(*args)

    monkeypatch.setattr(_native, "match", counting)

    def count() -> int:
        number = len(calls)
        calls.clear()
        return number

    return count


@pytest.fixture(scope="module")
def detectors() -> tuple[lvdet.GroundTruth, list[lvdet.Detections]]:
    gt, one = simulate(40, 12, dets_per_image=None, candidates_per_image=60, seed=1)
    score = np.random.default_rng(0).beta(2, 5, len(one))
    return gt, [one, one.with_scores(score)]


Detectors = tuple[lvdet.GroundTruth, list[lvdet.Detections]]


def test_a_pair_is_matched_once(detectors: Detectors, matched: Callable[[], int]) -> None:
    gt, (one, _) = detectors
    lvdet.evaluate(gt, one)
    assert matched() == 1
    lvdet.sweep(gt, one)
    assert matched() == 1
    lvdet.audit(gt, one)
    assert matched() == 1
    lvdet.rerank(gt, one, dets_per_class="best")
    assert matched() == 1
    lvdet.diagnose(gt, one)
    assert matched() == 1
    evaluate_and_diagnose(gt, one, Plan())
    assert matched() == 1
    lvdet.compare(gt, detectors[1], resamples=100)
    assert matched() == 2


@pytest.mark.parametrize("trained", [False, True])
def test_calibration_matches_what_it_put_in_another_order(
    detectors: Detectors, trained: bool, matched: Callable[[], int]
) -> None:
    """Platt, beta and temperature rise; histogram and BBQ have ties, which the file decides."""
    gt, (one, other) = detectors
    train = (gt, other) if trained else None
    for methods, changed in ((["platt", "beta", "temperature"], 0), (["histogram", "bbq"], 2)):
        lvdet.calibrate(gt, one, methods=methods, train=train, oracle=False)
        assert matched() == 1 + trained + changed


@pytest.mark.parametrize(("method", "changed"), [("platt", 0), ("histogram", 1)])
def test_a_report_matches_each_detector_once(
    detectors: Detectors,
    method: str,
    changed: int,
    matched: Callable[[], int],
    tmp_path: Path,
) -> None:
    gt, results = detectors
    for name, width, height in zip(
        gt.images.file_names, gt.images.width.tolist(), gt.images.height.tolist(), strict=True
    ):
        Image.new("RGB", (width, height)).save(tmp_path / name)
    lvdet.report(gt, results, method=method, images=tmp_path, resamples=100)
    assert matched() == len(results) * (1 + changed)


def test_tables_are_matched_not_paths() -> None:
    gt, dt = lvdet.simulate(images=3, classes=2, seed=1)
    with pytest.raises(InputError, match=r"'a\.json' is not a GroundTruth table: read it with"):
        match("a.json", dt)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"'r\.json' is not a Detections table: read it with"):
        match(gt, "r.json")  # type: ignore[arg-type]


def test_masks_are_compared_where_both_sides_have_them() -> None:
    gt, dt = lvdet.simulate(images=3, classes=2, seed=1, masks=True)
    assert match(gt, dt).iou == "segm"
    for pair in ((gt, replace(dt, masks=None)), (replace(gt, masks=None), dt)):
        assert match(*pair).iou == "bbox"


@pytest.mark.parametrize("federated", [False, True])
@pytest.mark.parametrize("exact_lvis", [False, True])
def test_what_has_to_be_found(federated: bool, exact_lvis: bool) -> None:
    """Empty objects too, except as lvis counts; no ignored ones, and none beyond all areas."""
    gt, _ = lvdet.simulate(images=3, classes=2, seed=1, style="lvis" if federated else "coco")
    area = np.resize([0.0, 5, 2e10, 7], len(gt))
    ignored = np.resize([False, False, False, True], len(gt))
    nothing = np.zeros(len(gt), dtype=bool)
    flags = {"ignore": ignored, "crowd": nothing}
    gt = replace(gt, area=area, **(flags if federated else {"ignore": nothing, "crowd": ignored}))
    empty = not (federated and exact_lvis)
    expected = np.resize([empty, True, False, False], len(gt))
    np.testing.assert_array_equal(to_be_found(gt, exact_lvis), expected)
