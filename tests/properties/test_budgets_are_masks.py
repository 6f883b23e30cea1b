"""The theorem lvdet stands on: limit-then-match equals match-then-mask, ties included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from lvdet.evaluation.average_precision import class_curves, class_precision
from lvdet.evaluation.pooled import Pools, ranked_together
from lvdet.limits.budgets import apply
from lvdet.matching.match import match
from lvdet.matching.match_options import MatchOptions
from oracles.cases import coco_case, lvis_case
from tabled import read_case
from thread_setting import threads

budgets = st.lists(
    st.one_of(
        st.integers(0, 12).map(lvdet.PerImage),
        st.integers(0, 12).map(lvdet.PerClass),
        st.integers(0, 5).map(lvdet.PerImageClass),
    ),
    max_size=3,
)


def tied(dt: lvdet.Detections, levels: int) -> lvdet.Detections:
    """The same detections with few different scores."""
    return dt.with_scores(np.round(dt.score * levels) / levels)


@given(
    seed=st.integers(0, 100_000),
    coco=st.booleans(),
    masks=st.booleans(),
    chosen=budgets,
    levels=st.sampled_from([1, 2, 4, 1000]),
)
def test_limit_then_match_is_match_then_mask(
    seed: int,
    coco: bool,
    masks: bool,
    chosen: list[lvdet.PerImage],
    levels: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    case = (coco_case if coco else lvis_case)(seed, masks)
    gt, dt = read_case(*case, tmp_path_factory.getbasetemp())
    dt = tied(dt, levels)
    iou = "segm" if masks else "bbox"
    keep = apply(chosen, dt)
    everything = match(gt, dt, MatchOptions(iou))
    limited_rows = np.arange(len(dt)) if keep is None else np.flatnonzero(keep)
    limited = dt[limited_rows]
    separate = match(gt, limited, MatchOptions(iou))

    masked, cut = class_curves(everything, keep), class_curves(separate)
    assert masked.precision.tobytes() == cut.precision.tobytes()
    assert masked.recall.tobytes() == cut.recall.tobytes()
    rows = everything.kept(keep)
    assert class_precision(everything, rows).tobytes() == class_precision(separate).tobytes()
    pools = [np.arange(len(gt.categories)), np.arange(0, len(gt.categories), 2)]
    together = Pools(everything, ranked_together(everything, dt.score), pools).curves(rows)
    alone = Pools(separate, ranked_together(separate, limited.score), pools).curves()
    assert together.precision.tobytes() == alone.precision.tobytes()
    # Not only the sums: each kept row has the same outcome.
    kept = np.isin(everything.detection, limited_rows)
    assert np.array_equal(
        everything.detection[kept], limited_rows[separate.detection].astype(np.int32)
    )
    assert np.array_equal(everything.outcomes[kept], separate.outcomes)


@given(
    seed=st.integers(0, 10_000),
    levels=st.sampled_from([1, 3, 1000]),
    limit=st.integers(0, 20),
    kind=st.sampled_from([lvdet.PerImage, lvdet.PerClass, lvdet.PerImageClass]),
    count=st.integers(1, 4),
)
def test_a_budget_keeps_the_best_of_each_group(
    seed: int, levels: int, limit: int, kind: type[lvdet.PerImage], count: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(0, 200))
    dt = tied(
        lvdet.Detections.from_arrays(
            rng.integers(0, 5, rows), rng.integers(0, 4, rows), rng.random(rows), np.ones((rows, 4))
        ),
        levels,
    )
    with threads(count):
        keep = apply([kind(limit)], dt)
    keep = np.ones(rows, dtype=bool) if keep is None else keep
    keys = {
        lvdet.PerImage: dt.image,
        lvdet.PerClass: dt.category,
        lvdet.PerImageClass: dt.image * 100 + dt.category,
    }[kind]
    for key in np.unique(keys):
        members = np.flatnonzero(keys == key)
        best = members[np.argsort(-dt.score[members], kind="stable")][:limit]
        assert set(members[keep[members]]) == set(best)


@given(seed=st.integers(0, 5_000), first=st.integers(1, 8), second=st.integers(1, 8))
def test_the_order_of_budgets_matters_as_written(seed: int, first: int, second: int) -> None:
    """Class cap then image cap: the second counts only what the first left."""
    rng = np.random.default_rng(seed)
    rows = 60
    dt = lvdet.Detections.from_arrays(
        rng.integers(0, 4, rows), rng.integers(0, 3, rows), rng.random(rows), np.ones((rows, 4))
    )
    after_first = apply([lvdet.PerClass(first)], dt)
    left = np.arange(rows) if after_first is None else np.flatnonzero(after_first)
    after_second = apply([lvdet.PerImage(second)], dt[left])
    expected = left if after_second is None else left[after_second]
    both = apply([lvdet.PerClass(first), lvdet.PerImage(second)], dt)
    assert np.array_equal(np.arange(rows) if both is None else np.flatnonzero(both), expected)


def test_rows_left_out_before_a_budget_do_not_count() -> None:
    dt = lvdet.Detections.from_arrays([1] * 4, [1, 2, 1, 2], [0.9, 0.8, 0.7, 0.6], np.ones((4, 4)))
    keep = apply([lvdet.PerImage(1)], dt, among=dt.category == 1)
    assert keep is not None
    assert keep.tolist() == [False, True, False, False]


def test_toy_example_of_the_paper(tmp_path: Path) -> None:
    """One image, A1 and A2 right with score 1.0, B1 with 0.8 right in 80 % of worlds; 2 an
    image. Ranking 1 keeps A1, A2; ranking 2 (one a class, then two an image) keeps A1, B1."""
    boxes = {"A1": [0, 0, 10, 10], "A2": [20, 0, 10, 10], "B1": [40, 0, 10, 10]}
    annotation = {"area": 100, "iscrowd": 0, "image_id": 1}
    results = [
        {"image_id": 1, "category_id": 1, "bbox": boxes["A1"], "score": 1.0},
        {"image_id": 1, "category_id": 1, "bbox": boxes["A2"], "score": 1.0},
        {"image_id": 1, "category_id": 2, "bbox": boxes["B1"], "score": 0.8},
    ]
    expected = {"ranking 1": 0.0, "ranking 2": 0.0, "no limit": 0.0}
    for right, chance in ((True, 0.8), (False, 0.2)):
        b = boxes["B1"] if right else [40, 50, 10, 10]
        annotations = {
            "images": [
                {
                    "id": 1,
                    "height": 100,
                    "width": 100,
                    "neg_category_ids": [],
                    "not_exhaustive_category_ids": [],
                }
            ],
            "categories": [
                {"id": 1, "name": "A", "frequency": "f"},
                {"id": 2, "name": "B", "frequency": "r"},
            ],
            "annotations": [
                annotation | {"id": 1, "category_id": 1, "bbox": boxes["A1"]},
                annotation | {"id": 2, "category_id": 1, "bbox": boxes["A2"]},
                annotation | {"id": 3, "category_id": 2, "bbox": b},
            ],
        }
        gt, dt = read_case(annotations, results, tmp_path)
        matches = match(gt, dt)
        for name, limits in {
            "ranking 1": [lvdet.PerImage(2)],
            "ranking 2": [lvdet.PerClass(1), lvdet.PerImage(2)],
            "no limit": [],
        }.items():
            curves = class_curves(matches, apply(limits, dt))
            expected[name] += chance * curves.precision[:, 0].mean()
    assert expected["ranking 1"] == pytest.approx(0.5, abs=1e-12)
    # Half recall is reached at 51 of the 101 points: (51 / 101 + 0.8) / 2.
    assert expected["ranking 2"] == pytest.approx((51 / 101 + 0.8) / 2, abs=1e-12)
    assert expected["no limit"] == pytest.approx(0.9, abs=1e-12)
