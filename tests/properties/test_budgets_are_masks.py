"""The theorem lvdet stands on: limit-then-match equals match-then-mask, ties included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from lvdet.evaluation.average_precision import class_curves, class_precision
from lvdet.evaluation.pooled import Pools
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

    rows = everything.kept(keep)
    masked, cut = class_curves(everything, rows), class_curves(separate)
    assert masked.precision.tobytes() == cut.precision.tobytes()
    assert masked.recall.tobytes() == cut.recall.tobytes()
    assert class_precision(everything, rows).tobytes() == class_precision(separate).tobytes()
    pools = [np.arange(len(gt.categories)), np.arange(0, len(gt.categories), 2)]
    in_one = None if rows is None else rows[everything.together]
    together = Pools(everything, pools).curves(in_one)
    alone = Pools(separate, pools).curves()
    assert together.precision.tobytes() == alone.precision.tobytes()
    # Not only the sums: each kept row has the same outcome.
    kept = np.isin(everything.detection, limited_rows)
    assert np.array_equal(
        everything.detection[kept], limited_rows[separate.detection].astype(np.int32)
    )
    masked_outcomes = everything.outcomes.where(kept)
    for mine, cut_column in zip(masked_outcomes.columns, separate.outcomes.columns, strict=True):
        assert np.array_equal(mine, cut_column)


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
