"""Comparing detectors: what must hold whatever they are, what is said, what is refused."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

import lvdet
from lvdet.comparison.bootstrap import Resampler, as_it_is, draw
from lvdet.comparison.compare import compare_pairs
from lvdet.comparison.detector_names import given_names, short_names
from lvdet.comparison.differences import Difference, Spread, by_error, discoveries
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.summary import NAMES, PROTOCOLS
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.matching.match_options import MatchOptions

NAN = float("nan")
SMALL = {"resamples": 100, "dets_per_image": 15, "dets_per_class": 40}


def made(seed: int, **options: Any) -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    return lvdet.simulate(40, 10, seed=seed, dets_per_image=40, **options)


def two(seed: int, **options: Any) -> tuple[lvdet.GroundTruth, list[lvdet.Detections]]:
    gt, first = made(seed, **options)
    _, second = made(seed, localisation=0.8, bias=1.0, **options)
    return gt, [first, second]


def differences(result: lvdet.Comparison, place: int = 0) -> np.ndarray:
    """[3, 4, 4] baseline, value, low and high of each protocol and metric."""
    one = result.compared[place]
    return np.array(
        [
            [
                [item.baseline, item.value, item.low, item.high]
                for item in (one.protocols[protocol][name] for name in NAMES)
            ]
            for protocol in PROTOCOLS
        ]
    )


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000), style=st.sampled_from(["lvis", "coco"]))
def test_a_detector_is_no_better_than_itself(seed: int, style: str) -> None:
    gt, dt = made(seed, style=style)
    result = lvdet.compare(gt, [dt, dt], **SMALL)
    one = result.compared[0]
    for metrics in one.protocols.values():
        for item in metrics.values():
            assert math.isnan(item.delta) or item.delta == 0
            assert math.isnan(item.error) or (item.error, item.low) == (0, 0)  # of few images
            assert not item.holds
        assert metrics["AP"].error == 0
    assert all(row.fixed.delta == row.old.delta == 0 for row in one.classes)
    assert not any(row.holds for row in one.classes)
    assert all("no significant difference" in text for text in result.verdicts[:3])


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_the_other_way_round_signs_are_the_others(seed: int) -> None:
    gt, pair = two(seed)
    forth = differences(lvdet.compare(gt, pair, **SMALL))
    back = differences(lvdet.compare(gt, pair[::-1], **SMALL))
    np.testing.assert_array_equal(forth[..., 0], back[..., 1])
    np.testing.assert_array_equal(forth[..., 1], back[..., 0])
    np.testing.assert_allclose(forth[..., 2], -back[..., 3], rtol=0, atol=1e-12)


def test_the_same_seed_is_the_same_result() -> None:
    gt, pair = two(3)
    first, again, other = (
        lvdet.compare(gt, pair, seed=seed, **SMALL).to_dict() for seed in (0, 0, 1)
    )
    assert first == again != other


@settings(max_examples=10)
@given(seed=st.integers(0, 10_000))
def test_scores_that_keep_the_order_of_classes_change_nothing_under_ap_fixed(seed: int) -> None:
    gt, dt = made(seed)
    power = np.random.default_rng(seed).uniform(0.3, 3.0, len(dt.category_ids))
    other = dt.with_scores(dt.score ** power[dt.category])
    one = lvdet.compare(gt, [dt, other], **SMALL).compared[0]
    for item in one.protocols["fixed"].values():
        assert math.isnan(item.delta) or item.delta == 0
        assert math.isnan(item.error) or item.error == 0  # of few images
    assert one.protocols["fixed"]["AP"].error == 0
    assert all((row.fixed.delta, row.fixed.error) == (0, 0) for row in one.classes)
    assert one.protocols["pool"]["AP"].error > 0


def test_numbers_are_those_of_evaluate() -> None:
    gt, pair = two(4)
    result = lvdet.compare(gt, [*pair, pair[0]], **SMALL)
    first = "simulated detections"
    assert result.names == (first, f"{first} (2)", f"{first} (3)")
    budgets = {name: value for name, value in SMALL.items() if name != "resamples"}
    for place, dt in ((0, pair[1]), (1, pair[0])):
        for protocol, values in lvdet.evaluate(gt, dt, **budgets).items():
            assert result.budgets[protocol] == values.budget
            for name, item in result.compared[place].protocols[protocol].items():
                assert item.value == pytest.approx(values[name], abs=1e-12, nan_ok=True)
    per_class = lvdet.evaluate(gt, pair[1], **budgets).per_class
    for row in result.compared[0].classes:
        at = per_class["id"].tolist().index(row.id)
        assert row.objects == per_class["instances"][at]
        assert row.fixed.value == pytest.approx(per_class["fixed.AP"][at], abs=1e-12)
        assert row.old.value == pytest.approx(per_class["old.AP"][at], abs=1e-12)


# What is said


def test_a_gain_under_ap_old_alone_vanishes() -> None:
    """Re-ranking raises AP-Old and nothing else."""
    gt, dt = lvdet.simulate(300, 30, seed=2, dets_per_image=None)
    ranked = lvdet.rerank(gt, dt, dets_per_class="best", dets_per_image=10).detections
    result = lvdet.compare(
        gt, [dt, ranked], names=["plain", "re-ranked"], dets_per_image=10, resamples=200
    )
    protocols = result.compared[0].protocols
    assert protocols["old"]["AP"].holds
    assert protocols["old"]["AP"].delta > 0
    assert not (protocols["fixed"]["AP"].holds and protocols["fixed"]["AP"].delta > 0)
    said = " ".join(result.verdicts)
    assert "AP-Old (10/image): re-ranked is better than plain" in said
    assert re.search("The gain of re-ranked under AP-Old (vanishes|reverses) under AP-Fixed", said)


def test_a_bias_of_the_scores_is_seen_under_ap_old_and_not_under_ap_fixed() -> None:
    common = {"images": 300, "classes": 30, "seed": 2, "dets_per_image": None, "decimals": (2, 15)}
    gt, biased = lvdet.simulate(bias=4.0, **common)
    _, plain = lvdet.simulate(**common)
    result = lvdet.compare(
        gt, [biased, plain], names=["biased", "plain"], dets_per_image=10, resamples=200
    )
    one = result.compared[0]
    assert one.protocols["fixed"]["AP"].delta == pytest.approx(0, abs=1e-12)
    assert one.old_beyond_fixed.delta == pytest.approx(one.protocols["old"]["AP"].delta, abs=1e-12)
    assert one.old_beyond_fixed.low == pytest.approx(one.protocols["old"]["AP"].low, abs=1e-12)
    assert any(
        text.startswith("The gain of plain under AP-Old vanishes under AP-Fixed: +0.00")
        for text in result.verdicts
    )


def test_a_better_detector_is_better_under_both() -> None:
    gt, poor = lvdet.simulate(300, 12, seed=2, localisation=0.3, dets_per_image=100)
    _, good = lvdet.simulate(300, 12, seed=2, localisation=0.9, dets_per_image=100)
    result = lvdet.compare(gt, [poor, good], names=["poor", "good"], resamples=200)
    assert "The gain of good holds under both AP-Old and AP-Fixed." in result.verdicts
    assert "vanishes" not in " ".join(result.verdicts)
    worse = lvdet.compare(gt, [good, poor], names=["good", "poor"], resamples=200)
    assert "The loss of poor holds under both AP-Old and AP-Fixed." in worse.verdicts
    held = [row for row in result.compared[0].classes if row.holds]
    assert held
    assert all(row.tested and row.images >= 10 and row.fixed.delta > 0 for row in held)
    assert any(not row.tested for row in result.compared[0].classes)
    assert any(f"differ ({len(held)} better, 0 worse)" in t for t in result.verdicts)


def test_objects_in_few_images_have_no_interval() -> None:
    """One object in one of many images: every drawn set that has it says the same."""
    gt, dt = lvdet.simulate(40, 3, style="coco", seed=0)
    one = gt.where(np.flatnonzero(gt.category == 0)[:1])
    right = lvdet.Detections.from_arrays(
        [int(gt.images.ids[one.image[0]])], [int(gt.categories.ids[0])], [0.9], one.box
    )
    result = lvdet.compare(one, [dt[:0], right], names=["none", "one"], resamples=100)
    item = result.compared[0].protocols["fixed"]["AP"]
    assert item.delta == pytest.approx(1)
    assert math.isnan(item.low)
    assert not item.holds
    assert "too few images have objects" in result.verdicts[0]
    assert not any("holds" in text or "vanishes" in text for text in result.verdicts)
    assert any(
        "the confidence intervals of AP may be too narrow" in text for text in result.warnings
    )


def test_few_images_are_warned_of() -> None:
    gt, pair = two(1)
    warnings = lvdet.compare(gt, pair, **SMALL).warnings
    assert any("rare classes" in text and "in fewer than 10 images" in text for text in warnings)


# Numbers


def test_an_interval_of_errors() -> None:
    item = by_error(0.25, 0.5, 0.1, 0.95)
    assert (item.low, item.high) == pytest.approx((0.25 - 0.195996, 0.25 + 0.195996), abs=1e-6)
    assert item.holds
    assert item.p_value == pytest.approx(0.0124193, abs=1e-6)
    assert not by_error(0.25, 0.5, 0.1, 0.99).holds
    assert by_error(0.5, 0.25, 0.1, 0.95).holds
    assert by_error(0.5, 0.5, 0.0, 0.95).p_value == 1
    assert by_error(0.5, 0.6, 0.0, 0.95).p_value == 0
    nothing = by_error(NAN, NAN, NAN, 0.95)
    assert not nothing.holds
    assert math.isnan(nothing.p_value)
    assert set(nothing.to_dict().values()) == {None}


def test_the_spread_of_parts_is_that_of_the_whole() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.normal(3.0, 0.5, (60, 2, 3))
    drawn[rng.random(drawn.shape) < 0.2] = NAN
    drawn[1:, 0, 0] = NAN
    spread = Spread(np.full((2, 3), 2.9))
    for first in range(0, 60, 7):
        spread.add(drawn[first : first + 7])
    errors = spread.errors()
    assert math.isnan(errors[0, 0])
    expected = np.sqrt(np.nanmean((drawn[:, :, 1:] - 2.9) ** 2, axis=0))
    np.testing.assert_allclose(errors[:, 1:], expected, rtol=1e-12)


def test_discoveries() -> None:
    """The example of Benjamini and Hochberg's paper: four of fifteen."""
    p_values = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
        0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
    ]  # fmt: skip
    assert discoveries(p_values, 0.05) == [True] * 4 + [False] * 11
    assert discoveries([0.04, NAN, 0.03], 0.05) == [True, False, True]
    assert discoveries([0.5, NAN], 0.05) == [False, False]
    assert discoveries([], 0.05) == []


@pytest.mark.parametrize("seed", range(20))
def test_discoveries_are_those_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = 0
    for rate in (0.01, 0.05, 0.2):
        p_values = rng.random(rng.integers(1, 60)) ** rng.integers(1, 6)
        p_values[rng.random(len(p_values)) < 0.2] = rng.choice([0.0, 1.0, p_values[0], NAN])
        known = ~np.isnan(p_values)
        expected = np.zeros(len(p_values), dtype=bool)
        if known.any():
            expected[known] = false_discovery_control(p_values[known], method="bh") <= rate
        assert discoveries(p_values.tolist(), rate) == expected.tolist()
        found += expected.sum()
    assert found


# Names


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        (["a.json", "b.json"], ("a.json", "b.json")),
        (["x/a/r.json", "x/b/r.json"], ("a/r.json", "b/r.json")),
        (["x/a/r.json", "y/a/r.json", "z.json"], ("x/a/r.json", "y/a/r.json", "z.json")),
        (["r.json", "r.json"], ("r.json", "r.json (2)")),
        (["r.json", "b/r.json"], ("r.json", "b/r.json")),
        (["r", "r", "r (2)"], ("r", "r (2)", "r (2) (2)")),
        (["a/\x1b[31mred\n", "b/\x1b[31mred\n"], ("a/?[31mred?", "b/?[31mred?")),
    ],
)
def test_names_tell_apart(sources: list[str], names: tuple[str, ...]) -> None:
    assert short_names(sources) == names


def test_names_that_were_given() -> None:
    assert given_names(["a", "b\x00"], 2) == ("a", "b?")
    for names in (["a"], ["a", "a"], ["a", " "], "ab"):
        with pytest.raises(lvdet.InputError, match="names"):
            given_names(names, 2)


# What is written


def test_plain_values() -> None:
    gt, pair = two(5, style="coco")
    result = lvdet.compare(gt, pair, names=["a", "b"], **SMALL)
    content = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert content["baseline"] == "a"
    assert content["budgets"] == {"old": "15/image", "fixed": "40/class", "pool": "40/class"}
    (one,) = content["comparisons"]
    assert one["detector"] == "b"
    assert one["protocols"]["pool"]["APr"]["delta"] is None
    assert one["protocols"]["pool"]["AP"]["holds"] in (True, False)
    assert [row["name"] for row in content["inputs"]["detections"]] == ["a", "b"]
    lines = list(csv.DictReader(io.StringIO(result.to_csv())))
    assert len(lines) == 12 + 2 * len(one["classes"])
    assert {line["protocol"] for line in lines if line["class"]} == {"old", "fixed"}
    assert float(lines[0]["delta"]) == one["protocols"]["old"]["AP"]["delta"]
    assert "APr" not in str(result)
    assert "15/image" in str(result)
    assert result.to_markdown().count("###") == len(result.layouts())
    assert r"\label{tab:compare-1}" in result.to_latex()


def test_hostile_names_are_harmless() -> None:
    gt, pair = two(5)
    names = tuple(f"a|b\x1b[2J\n{{}}%_\\<b>{row}" for row in range(len(gt.categories)))
    gt = replace(gt, categories=replace(gt.categories, names=names))
    result = lvdet.compare(gt, pair, names=["a|\n\x1b[1mb", "_%$#<script>"], **SMALL)
    for text in (str(result), result.to_markdown(), result.to_latex()):
        assert "\x1b" not in text
        assert all(line.isprintable() for line in text.split("\n"))
    assert "<script>" not in " ".join(result.to_markdown().splitlines()[-6:])
    bars = [line.replace(r"\|", "") for line in result.to_markdown().splitlines() if "|" in line]
    assert {line.count("|") for line in bars if line.startswith("|")} <= {9, 10}


# What is refused


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"resamples": 99}, "resamples is 99, expected at least 100"),
        ({"resamples": 1000.0}, "resamples is 1000.0"),
        ({"confidence": 0.0}, "confidence is 0.0"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": NAN}, "confidence is nan"),
        ({"seed": -1}, "seed is -1"),
        ({"names": ["a"]}, "1 names for 2 detectors"),
        ({"dets_per_class": -1}, "limit on detections is -1"),
        ({"iou": "box"}, "iou is 'box'"),
    ],
)
def test_settings_that_make_no_sense(options: dict[str, Any], says: str) -> None:
    gt, pair = two(0)
    with pytest.raises(lvdet.InputError, match=says):
        lvdet.compare(gt, pair, **options)


def test_detectors_that_cannot_be_compared(tmp_path: Path) -> None:
    gt, pair = two(0)
    with pytest.raises(lvdet.InputError, match="1 results to compare, expected at least 2"):
        lvdet.compare(gt, pair[:1])
    with pytest.raises(lvdet.InputError, match="a list of tables or paths"):
        lvdet.compare(gt, "ab")  # type: ignore[arg-type]
    with pytest.raises(lvdet.InputError, match="only once"):
        lvdet.compare(gt, ["-", "-"])
    other, _ = made(1)
    pairs = [load_pair(truth, pair[0], None) for truth in (gt, replace(gt))]
    with pytest.raises(lvdet.InputError, match="use different annotations"):
        compare_pairs(pairs)
    with pytest.raises(lvdet.InputError, match="image_id"):
        lvdet.compare(other, pair)
    with pytest.raises(lvdet.InputError, match="compared with iou segm"):
        compare_pairs([pairs[0], Pair(gt, pairs[0].results, MatchOptions("segm"))])
    whole = pairs[0].results
    cut = replace(whole, ranking=whole.where(np.arange(len(whole.ranking)) > 5).ranking)
    with pytest.raises(lvdet.InputError, match="was read without rows"):
        compare_pairs([pairs[0], Pair(gt, cut, pairs[0].options)])
    masked, with_masks = made(0, masks=True)
    with pytest.raises(lvdet.InputError, match=r"has masks but .* has none"):
        lvdet.compare(masked, [with_masks, replace(with_masks, masks=None)])
    with pytest.raises(lvdet.InputError, match=r"has masks but .* has none"):
        lvdet.compare(masked, [replace(with_masks, masks=None), with_masks])


def test_one_image_cannot_be_drawn() -> None:
    gt, dt = lvdet.simulate(1, 5)
    with pytest.raises(lvdet.InputError, match="fewer than two images"):
        lvdet.compare(gt, [dt, dt])


def test_differences_are_values() -> None:
    assert Difference(0.1, 0.3, 0.1, 0.0, 0.4).delta == pytest.approx(0.2)


def test_errors_are_distances_of_drawn_differences_from_the_observed() -> None:
    """By hand from the values of each drawn set, AP-Old beyond AP-Fixed among them."""
    gt, pair = two(3)
    one = lvdet.compare(gt, pair, resamples=100, dets_per_image=4).compared[0]
    values = []
    for weights in (as_it_is(len(gt.images)), draw(len(gt.images), 0, 100, seed=0)):
        resamplers = (
            Resampler(load_pair(gt, dt, None), old=PerImage(4), fixed=PerClass(10_000))
            for dt in pair
        )
        first, second = (item.values(weights).metrics(gt.categories) for item in resamplers)
        values.append(second - first)
    observed, drawn = values[0][0], values[1][:100]
    for row, protocol in enumerate(("old", "fixed", "pool")):
        error = np.sqrt(np.mean((drawn[:, row, 0] - observed[row, 0]) ** 2))
        assert one.protocols[protocol]["AP"].error == pytest.approx(error, rel=1e-9)
        assert error > 0
    beyond = observed[0, 0] - observed[1, 0]
    away = drawn[:, 0, 0] - drawn[:, 1, 0] - beyond
    assert one.old_beyond_fixed.delta == pytest.approx(beyond, abs=1e-12)
    assert one.old_beyond_fixed.error == pytest.approx(np.sqrt(np.mean(away**2)), rel=1e-9)
