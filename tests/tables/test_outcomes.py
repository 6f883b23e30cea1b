"""Outcomes in two forms, dense and as the hits among rows that match nothing, and their curves."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lvdet import _native
from lvdet.evaluation.average_precision import RECALLS, Curves, accumulate
from lvdet.tables.outcomes import Outcomes
from thread_setting import threads as set_to

Bools = NDArray[np.bool_]


class Dense(NamedTuple):
    """[rows, scopes, thresholds] which rows are matched, and which are not counted."""

    matched: Bools
    ignored: Bools


def made(seed: int, rows: int, scopes: int, thresholds: int) -> tuple[Outcomes, Dense]:
    """Rows of which few match anything, as matching makes them, in both forms."""
    rng = np.random.default_rng(seed)
    shape = (rows, scopes, thresholds)
    hit = rng.random(rows) < 0.3
    matched = (rng.random(shape) < 0.6) & hit[:, None, None]
    matched[hit, 0, 0] = True  # something of each hit is matched
    ignored = np.where(
        hit[:, None, None], rng.random(shape) < 0.3, rng.random((rows, scopes, 1)) < 0.2
    )
    hits = np.flatnonzero(hit).astype(np.int32)
    bits = np.stack([matched[hits], ignored[hits]], axis=2)
    wrong = np.zeros(rows, dtype=np.uint8)
    for scope in range(scopes):
        wrong |= ((~hit & ~ignored[:, scope, 0]) << scope).astype(np.uint8)
    packed = np.packbits(bits, axis=3, bitorder="little")
    return Outcomes(wrong, hits, np.ascontiguousarray(packed)), Dense(matched, ignored)


def curve(right: Bools, wrong: Bools, objects: int) -> tuple[list[float], float]:
    """The precision at 101 recalls and the highest recall, by their definitions."""
    if objects == 0:
        return [float("nan")] * len(RECALLS), float("nan")
    tp, fp = np.cumsum(right).astype(float), np.cumsum(wrong).astype(float)
    recall, precision = tp / objects, tp / (fp + tp + np.spacing(1))
    at = np.searchsorted(recall, RECALLS, side="left")
    values = [precision[place:].max() if place < len(precision) else 0.0 for place in at]
    return values, float(recall[-1]) if len(recall) else 0.0


sizes = st.tuples(
    st.integers(0, 1000),  # seed
    st.integers(0, 60),  # rows
    st.integers(1, 8),  # scopes
    st.sampled_from([1, 2, 8, 9, 10, 64, 65, 130]),  # thresholds
)


@given(size=sizes, masked=st.booleans(), threads=st.sampled_from([1, 3]))
def test_curves_are_those_of_the_definitions(
    size: tuple[int, int, int, int], masked: bool, threads: int
) -> None:
    seed, rows, scopes, thresholds = size
    outcomes, dense = made(*size)
    rng = np.random.default_rng(seed + 1)
    offsets = np.sort(np.append(rng.integers(0, rows + 1, 3), [0, rows]))
    keep = rng.random(rows) < 0.7 if masked else np.ones(rows, dtype=bool)
    truth = rng.integers(0, 40, (len(offsets) - 1, scopes))
    with set_to(threads):
        curves, points = accumulate(
            outcomes, thresholds, truth, offsets, keep=keep if masked else None, points=True
        )
    for ranking, (begin, end) in enumerate(itertools.pairwise(offsets)):
        here = np.arange(begin, end)[keep[begin:end]]
        for scope in range(scopes):
            for t in range(thresholds):
                matched = dense.matched[here, scope, t]
                counted = ~dense.ignored[here, scope, t]
                objects = int(truth[ranking, scope])
                values, recall = curve(matched & counted, ~matched & counted, objects)
                at = (ranking, scope, t)
                assert np.array_equal(points[at], values, equal_nan=True)
                assert np.array_equal(curves.precision[at], sum(values) / 101, equal_nan=True)
                assert np.array_equal(curves.recall[at], recall, equal_nan=True)


@given(size=sizes, masked=st.booleans())
def test_rankings_of_the_same_rows_keep_their_curves(
    size: tuple[int, int, int, int], masked: bool
) -> None:
    """What is known of rankings that keep the same rows, or all, is taken from there, the others
    are computed."""
    seed, rows, scopes, thresholds = size
    outcomes, _ = made(*size)
    rng = np.random.default_rng(seed + 2)
    offsets = np.sort(np.append(rng.integers(0, rows + 1, 3), [0, rows]))
    truth = rng.integers(0, 40, (len(offsets) - 1, scopes))
    keep, before = np.ones(rows, dtype=bool), rng.random(rows) < 0.8
    keep[rng.integers(0, rows, 2) if rows else []] = False
    before[: rows // 2] = keep[: rows // 2]

    def marked(value: float) -> Curves:
        return Curves(
            *(np.full((len(truth), scopes, thresholds), value) for _ in range(2)),
            *(np.full((len(truth), thresholds), value) for _ in range(2)),
        )

    known = [(None, marked(0.5)), (before, marked(0.25))]
    mask = keep if masked else None
    curves, _ = accumulate(outcomes, thresholds, truth, offsets, keep=mask, known=known)
    alone, _ = accumulate(outcomes, thresholds, truth, offsets, keep=mask)
    for ranking, (begin, end) in enumerate(itertools.pairwise(offsets)):
        value = None
        if not masked or keep[begin:end].all():
            value = 0.5
        elif np.array_equal(keep[begin:end], before[begin:end]):
            value = 0.25
        for got, other in (
            (curves.precision, alone.precision),
            (curves.recall, alone.recall),
        ):
            wanted = other[ranking]
            if value is not None:
                wanted = np.where(np.isnan(wanted), np.nan, value)
            assert np.array_equal(got[ranking], wanted, equal_nan=True)


@given(size=sizes)
def test_forms_agree(size: tuple[int, int, int, int]) -> None:
    seed, rows, scopes, thresholds = size
    outcomes, dense = made(*size)
    rng = np.random.default_rng(seed + 3)
    order = rng.permutation(rows).astype(np.int32)
    keep = rng.random(rows) < 0.5
    for scope in range(scopes):
        for t in range(thresholds):
            for form, rows_of_it in (
                (outcomes, np.arange(rows)),
                (outcomes.ordered(order), order),
                (outcomes.where(keep), np.flatnonzero(keep)),
            ):
                matched, ignored = form.flags(t, scope)
                assert (matched == dense.matched[rows_of_it, scope, t]).all()
                assert (ignored == dense.ignored[rows_of_it, scope, t]).all()


@given(size=sizes, classes=st.integers(1, 5), threads=st.sampled_from([1, 3]))
def test_pools_are_scopes(size: tuple[int, int, int, int], classes: int, threads: int) -> None:
    """In another order, a row counts where its class is in the pool, as it counts in scope 0."""
    seed, rows, _, thresholds = size
    outcomes, dense = made(*size)
    rng = np.random.default_rng(seed + 4)
    order = rng.permutation(rows).astype(np.int32)
    offsets = np.sort(np.append(rng.integers(0, rows + 1, classes - 1), [0, rows]))
    category = np.repeat(np.arange(classes), np.diff(offsets))
    pools = int(rng.integers(1, _native.MOST_POOLS + 1))
    member = rng.integers(0, 2, (pools, classes)).astype(np.uint8)
    pooled = Outcomes(*_native.pool_outcomes(outcomes.columns, order, offsets, member, threads))
    for pool in range(pools):
        inside = member[pool, category[order]].astype(bool)
        for t in range(thresholds):
            matched, ignored = pooled.flags(t, pool)
            assert (ignored == (dense.ignored[order, 0, t] | ~inside)).all()
            assert (matched == (dense.matched[order, 0, t] & inside)).all()


def test_rows_at_one_threshold() -> None:
    right = np.array([True, False, True])
    matched, ignored = Outcomes.at_one_threshold(right).flags(0)
    assert matched.tolist() == [True, False, True]
    assert not ignored.any()
