"""Ranks against a plain sort of each group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import lvdet
from lvdet import _native
from lvdet.limits import ranks as ranks_module
from lvdet.limits.budgets import Budget, apply
from lvdet.limits.ranks import Ranks
from lvdet.tables.results import Ranking, Results
from thread_setting import threads

budgets = st.lists(
    st.one_of(
        st.sampled_from([0, 1, 2, 3, 7, 2**31 - 1, 2**40]).map(lvdet.PerImage),
        st.integers(0, 12).map(lvdet.PerClass),
        st.integers(0, 4).map(lvdet.PerImageClass),
    ),
    max_size=3,
)


def random_ranking(seed: int, levels: int) -> Ranking:
    """A few images and classes; few levels are many ties."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(0, 300))
    score = np.round(rng.normal(size=rows) * levels) / levels  # with zeros of both signs
    dt = lvdet.Detections.from_arrays(
        rng.integers(0, 6, rows), rng.integers(0, 5, rows), score, np.ones((rows, 4))
    )
    return Results.of(dt).ranking


def slow_mask(
    ranking: Ranking, chosen: Sequence[Budget], classes: NDArray[np.bool_] | None
) -> list[bool]:
    """Each budget in turn, by sorting what is left of each group."""
    left = [classes is None or bool(classes[c]) for c in ranking.category]
    for budget in chosen:
        groups: dict[tuple[int, ...], list[int]] = {}
        for row, (image, category) in enumerate(
            zip(ranking.image.tolist(), ranking.category.tolist(), strict=True)
        ):
            if left[row]:
                key = {
                    lvdet.PerImage: (image,),
                    lvdet.PerClass: (category,),
                    lvdet.PerImageClass: (image, category),
                }[type(budget)]
                groups.setdefault(key, []).append(row)
        for rows in groups.values():
            for row in sorted(rows, key=lambda row: -ranking.score[row])[budget.limit :]:
                left[row] = False
    return left


@given(
    seed=st.integers(0, 100_000),
    levels=st.sampled_from([1, 3, 1000]),
    questions=st.lists(st.tuples(budgets, st.booleans()), min_size=1, max_size=6),
    count=st.integers(1, 3),
)
def test_ranks_are_those_of_a_sort(
    seed: int, levels: int, questions: list[tuple[list[Budget], bool]], count: int
) -> None:
    """Question after question to the same ranks, so that what is remembered is used."""
    ranking = random_ranking(seed, levels)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(ranking))[: len(ranking) // 2].astype(np.int32)
    lvdet.set_threads(count)
    ranks = Ranks(ranking, rows)
    subset = rng.random(len(ranking.category_ids)) < 0.6
    for chosen, restricted in questions:
        classes = subset if restricted else None
        expected = np.array(slow_mask(ranking, chosen, classes), dtype=bool)
        kept = ranks.kept(chosen, classes=classes)
        assert np.array_equal(
            np.ones(len(rows), dtype=bool) if kept is None else kept, expected[rows]
        )


@pytest.mark.parametrize("images", [1, 40, 30_000])
def test_threads_change_nothing(images: int) -> None:
    """More rows than a block, groups of all sizes, sorted and unsorted."""
    rng = np.random.default_rng(images)
    rows = 150_000
    dt = lvdet.Detections.from_arrays(
        np.sort(rng.integers(0, images, rows)),
        (rng.random(rows) ** 3 * 50).astype(int),
        np.round(rng.beta(1, 20, rows), 4),
        np.ones((rows, 4)),
    )
    ranking = Results.of(dt).ranking
    wanted = np.flatnonzero(rng.random(rows) < 0.1).astype(np.int32)
    classes = rng.random(len(ranking.category_ids)) < 0.5
    for chosen in (
        [lvdet.PerImage(3)],
        [lvdet.PerClass(1000), lvdet.PerImage(2)],
        [lvdet.PerImage(20), lvdet.PerClass(100)],
    ):
        for members in (None, classes):
            among = None if members is None else members[ranking.category]
            expected = apply(chosen, ranking, among=among)
            assert expected is not None
            for count in (1, 3):
                with threads(count):
                    ranks = Ranks(ranking, wanted)
                    for _ in range(2):  # the best are looked for, and then all are ranked
                        kept = ranks.kept(chosen, classes=members)
                        assert kept is not None
                        assert np.array_equal(kept, expected[wanted])


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 1.0]),
        max_size=60,
    )
)
def test_a_group_is_sorted_for_any_scores(scores: list[float]) -> None:
    score = np.array(scores, dtype=np.float64)
    rows, offsets = _native.rank_groups(np.zeros(len(score), dtype=np.int32), 1, score, 1)
    assert offsets.tolist() == [0, len(score)]
    assert rows.tolist() == sorted(range(len(score)), key=lambda row: -score[row])


def test_nothing_to_rank() -> None:
    ranking = Results.of(lvdet.Detections.from_arrays([], [], [], np.zeros((0, 4)))).ranking
    ranks = Ranks(ranking, np.zeros(0, dtype=np.int32))
    assert ranks.kept([lvdet.PerImage(3), lvdet.PerClass(1)]) is None
    assert ranks.kept([lvdet.PerClass(0)]) is None


def test_what_is_forgotten_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for two rankings only, each question is answered as by a sort."""
    monkeypatch.setattr(ranks_module, "_REMEMBERED", 0)
    ranking = random_ranking(5, 3)
    rows = np.arange(len(ranking), dtype=np.int32)
    ranks = Ranks(ranking, rows)
    chains = [
        [lvdet.PerImageClass(n), last]
        for n in (1, 2, 3)
        for last in (lvdet.PerImage(4), lvdet.PerClass(5))
    ]
    for chosen in chains * 2:
        found = ranks.kept(chosen)
        assert found is not None
        assert found.tolist() == slow_mask(ranking, chosen, None)
        assert len(ranks._known) <= 2
