"""Re-ranking against results that were cut by hand, and what it exchanged."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lvdet
from oracles.cases import coco_case, lvis_case
from oracles.lvis_reference import cut_per_class, cut_per_image, drop_unknown
from oracles.pool_reference import RANGES, _cells, _rank
from tabled import assert_agree, read_case, write_case

Json = dict[str, Any]
NAMES = ("AP", "APr", "APc", "APf")


def rows_of(dt: lvdet.Detections) -> list[tuple[int, int, float, list[float]]]:
    return [
        (int(dt.image_ids[i]), int(dt.category_ids[c]), float(s), b.tolist())
        for i, c, s, b in zip(dt.image, dt.category, dt.score, dt.box, strict=True)
    ]


@pytest.mark.parametrize("masks", [False, True])
def test_it_is_the_file_cut_by_class_and_then_by_image(masks: bool, tmp_path: Path) -> None:
    changed = 0
    for seed in range(25):
        annotations, results = (coco_case if seed % 5 == 4 else lvis_case)(seed, masks)
        known = drop_unknown(annotations, results)
        if not known:
            continue
        gt, dt = read_case(annotations, results, tmp_path)
        result = lvdet.rerank(gt, dt, dets_per_class=2, dets_per_image=3)
        cut = cut_per_image(cut_per_class(known, 2), 3)
        _, expected = read_case(annotations, cut, tmp_path)
        assert rows_of(result.detections) == rows_of(expected)
        if masks:
            assert result.detections.masks is not None
            assert expected.masks is not None
            shapes = [result.detections.masks.row(i) for i in range(len(expected))]
            assert shapes == [expected.masks.row(i) for i in range(len(expected))]
        iou = result.inputs["iou"]
        whole = lvdet.evaluate(gt, dt, iou=iou, dets_per_image=3)
        after = lvdet.evaluate(gt, expected, iou=iou, dets_per_image=3)
        for protocol in ("old", "fixed"):
            for ours, theirs in ((result.before, whole), (result.after, after)):
                expected_of = {name: theirs[protocol][name] for name in NAMES}
                assert_agree(ours[protocol], expected_of, f"seed {seed}, {protocol}")
        changed += len(result.account()) > 0
    assert changed > 5


def test_the_account_is_the_difference_of_the_two_rankings(tmp_path: Path) -> None:
    seen = set()
    for seed in range(30):
        annotations, results = lvis_case(seed, False, quirks=False)
        scores = random.Random(seed).sample(range(1, 10**6), len(results))
        results = [
            row | {"score": score / 10**6} for row, score in zip(results, scores, strict=True)
        ]
        gt, dt = read_case(annotations, results, tmp_path)
        account = lvdet.rerank(gt, dt, dets_per_class=2, dets_per_image=3).account()
        first, second = cut_per_image(results, 3), cut_per_image(cut_per_class(results, 2), 3)
        outcome = {
            row.score: "not counted" if row.ignored else "right" if row.right else "wrong"
            for cell in _cells(annotations, results, "bbox", False).values()
            for row in _rank(cell, 0.5, RANGES[""], False)
        }
        names = {c["id"]: c["name"] for c in annotations["categories"]}
        found = {image.image_id: image for image in account}
        assert list(found) == sorted(found)
        for image in annotations["images"]:
            mine = found.pop(image["id"], None)
            sides = []
            for one, other in ((first, second), (second, first)):
                rows = [r for r in one if r not in other and r["image_id"] == image["id"]]
                sides.append(sorted(rows, key=lambda row: -row["score"]))
            if mine is None:
                assert sides == [[], []]
                assert account.image(image["id"]).dropped == ()
                continue
            assert account.image(image["id"]) == mine
            for ours, expected in zip((mine.dropped, mine.added), sides, strict=True):
                assert [item.to_dict() for item in ours] == [
                    {
                        "category_id": row["category_id"],
                        "class": names[row["category_id"]],
                        "score": row["score"],
                        "bbox": row["bbox"],
                        "outcome": outcome.get(row["score"], "not counted"),
                    }
                    for row in expected
                ]
                seen |= {item.outcome for item in ours}
        assert not found
    assert seen == {"right", "wrong", "not counted"}


@pytest.fixture(scope="module")
def simulated() -> tuple[lvdet.GroundTruth, lvdet.Detections]:
    return lvdet.simulate(images=300, classes=1203, dets_per_image=None, seed=7)


def test_the_paper_s_effect(simulated: tuple) -> None:
    """AP-Old rises, AP-Fixed falls: nothing was added to what the detector knows."""
    result = lvdet.rerank(*simulated, dets_per_class=150)
    assert result.after["old"]["AP"] > result.before["old"]["AP"] + 0.01
    assert result.after["old"]["APr"] > result.before["old"]["APr"] + 0.02
    assert result.after["fixed"]["AP"] <= result.before["fixed"]["AP"]
    images = list(result.account())
    assert len(images) > 250
    for image in images:
        # Both rankings fill the image, so as many come as go, and none that comes scores higher.
        assert len(image.added) == len(image.dropped)
        assert max(x.score for x in image.added) <= min(x.score for x in image.dropped)


def test_the_best_cap(simulated: tuple) -> None:
    gt, dt = simulated
    search = lvdet.search_class_cap(gt, dt)
    assert search.tried[search.best] == max(search.tried.values()) == search.after["AP"]
    assert 20 < len(search.tried) < 60
    # A dense grid of caps finds nothing much better.
    rows = lvdet.sweep(gt, dt, dets_per_image=300, dets_per_class=list(range(60, 300, 10))).rows
    assert max(row.metrics["AP"] for row in rows) <= search.after["AP"] + 0.001
    by_cap = {row.dets_per_class: row.metrics["AP"] for row in rows}
    for cap in by_cap.keys() & search.tried.keys():
        assert by_cap[cap] == search.tried[cap]
    best = lvdet.rerank(gt, dt, dets_per_class="best")
    assert best.dets_per_class == search.best
    assert best.search is not None
    assert best.search.tried == search.tried
    assert f"best of {len(search.tried)} class caps tried" in str(best)
    assert best.after["old"] == search.after


def test_where_nothing_is_to_be_gained() -> None:
    """Fewer detections per image than the limit: no cap helps, and the largest is chosen."""
    gt, dt = lvdet.simulate(images=40, classes=20, dets_per_image=50, seed=1)
    search = lvdet.search_class_cap(gt, dt)
    assert search.after == search.before
    assert search.best == np.bincount(dt.category).max()
    result = lvdet.rerank(gt, dt)
    assert result.detections is dt
    assert len(result.account()) == 0
    assert result.warnings[-1] == (
        f"No class has more than {search.best:,} detections, so 10000/class keeps them "
        "all: try --dets-per-class best."
    )
    assert "try" not in " ".join(lvdet.rerank(gt, dt, dets_per_class="best").warnings)


def test_annotations_are_read_before_results(simulated: tuple, tmp_path: Path) -> None:
    """Those are large: what is wrong with the annotations is said at once."""
    (tmp_path / "dt.json").write_text("no results")
    for verb in (lvdet.rerank, lvdet.search_class_cap):
        with pytest.raises(lvdet.InputError, match=r"gt\.json"):
            verb(tmp_path / "gt.json", tmp_path / "dt.json")


def test_paths_are_read(simulated: tuple, tmp_path: Path) -> None:
    paths = write_case(*simulated, tmp_path)
    read, made = (lvdet.rerank(*both, dets_per_class=150) for both in (paths, simulated))
    assert (read.before, read.after) == (made.before, made.after)
    assert read.detections.score.tolist() == made.detections.score.tolist()
    assert lvdet.search_class_cap(*paths) == lvdet.search_class_cap(*simulated)


def test_an_image_in_words(simulated: tuple) -> None:
    image = next(iter(lvdet.rerank(*simulated, dets_per_class=150).account()))
    number = {
        side: Counter(item.outcome for item in items)
        for side, items in (("dropped", image.dropped), ("added", image.added))
    }
    for side, of in number.items():
        assert (
            f"{side}: {sum(of.values()):,} ({of['right']:,} correct, {of['wrong']:,} incorrect, "
            f"{of['not counted']:,} not counted, at IoU 0.5)"
        ) in str(image)
    for item in (*image.dropped, *image.added):
        word = {"right": "correct", "wrong": "incorrect"}.get(item.outcome, item.outcome)
        assert f"{item.name}  {word:<11}  [" in str(image)


def test_a_coco_file_has_another_limit() -> None:
    gt, dt = lvdet.simulate(images=20, classes=20, dets_per_image=50, style="coco", seed=1)
    result = lvdet.rerank(gt, dt, dets_per_class=20, dets_per_image=10)
    assert "COCO's own limit is 100/image/class" in result.warnings[-1]
    assert "AP-Old" not in str(result)
    assert "APr" not in str(result)


def test_values_are_plain(simulated: tuple) -> None:
    content = json.loads(json.dumps(lvdet.rerank(*simulated).to_dict(), allow_nan=False))
    assert content["dets_per_class"] == 10_000
    assert content["caps_tried"] is None
    assert content["before"]["old"]["AP"] == lvdet.evaluate(*simulated)["old"].AP


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dets_per_class": "most"}, "'most'"),
        ({"dets_per_class": -1}, "limit on detections is -1"),
        ({"dets_per_image": 1.5}, "limit on detections is 1.5"),
        ({"iou": "mask"}, "mask"),
    ],
)
def test_bad_options_are_named(simulated: tuple, options: Json, message: str) -> None:
    with pytest.raises(lvdet.InputError, match=message):
        lvdet.rerank(*simulated, **options)


def test_an_unknown_image_is_said(simulated: tuple) -> None:
    with pytest.raises(lvdet.InputError, match="image -5 is not in"):
        lvdet.rerank(*simulated).account().image(-5)
