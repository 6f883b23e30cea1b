"""One picture: what its labels say holds of everything that is in it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lvdet.images import tail
from lvdet.images.class_names import COLOURS, COMBINATIONS, RIMS, Vocabulary, draw_vocabulary
from lvdet.images.federation import draw_labels
from lvdet.images.image_batch import describe
from lvdet.images.outlines import OUTLINES
from lvdet.images.scene import Scene, World, compose
from lvdet.images.stencils import FILLS, MAIN, OUTSIDE, RIM, SECOND, stencil
from lvdet.images.visible import visible_parts


def world(classes: int = 60, size: int = 160, objects: float = 12, instances: float = 1.5) -> World:
    share = np.cumsum(np.full(classes, 1 / classes))
    vocabulary = draw_vocabulary(np.random.default_rng(0), classes)
    return World(vocabulary, np.minimum(share, 1.0), size, objects, instances)


def scenes(number: int, here: World, positives: int = 7) -> list[tuple[np.ndarray, Scene]]:
    out = []
    for seed in range(number):
        rng = np.random.default_rng(seed)
        positive = np.sort(rng.choice(len(here.vocabulary), positives, replace=False))
        out.append((positive, compose(rng, positive, here)))
    return out


def test_labels_hold_for_the_whole_truth() -> None:
    unverified = missed = exhaustive = 0
    for positive, scene in scenes(60, world()):
        labelled = scene.category[scene.annotated]
        hidden = scene.category[~scene.annotated]
        # Exactly the planned classes are labelled.
        assert set(labelled) == set(positive)
        # Negative: nowhere in the picture, labelled or not.
        assert not set(scene.negative) & set(scene.category)
        # Unlabelled objects of a labelled class: only where it says so.
        assert set(hidden) & set(labelled) <= set(scene.not_exhaustive)
        assert set(scene.not_exhaustive) <= set(positive)
        unverified += len(set(hidden) - set(positive))
        missed += len(set(hidden) & set(positive))
        exhaustive += len(set(positive) - set(scene.not_exhaustive))
        assert len(scene.negative)
    assert min(unverified, missed, exhaustive) >= 10


def test_every_object_is_visible_and_enough_of_most() -> None:
    areas = []
    for _, scene in scenes(30, world()):
        height, width = scene.owner.shape
        assert scene.pixels.shape == (height, width, 3)
        assert scene.pixels.dtype == np.uint8
        seen = np.bincount(scene.owner.ravel() + 1, minlength=len(scene.category) + 1)[1:]
        assert len(seen) == len(scene.category)
        areas.extend(seen.tolist())
    assert min(areas) >= 1
    assert np.mean(np.array(areas) >= 16) > 0.99


@pytest.mark.parametrize("size", [64, 300])
def test_planned_classes_are_there_in_a_crowd(size: int) -> None:
    # The largest number of objects, and each class several times.
    here = world(100, size, min(200, size**2 // 300), 3.0)
    for positive, scene in scenes(5, here, positives=min(60, size // 7)):
        assert set(positive) <= set(scene.category[scene.annotated])


def test_parts_are_what_a_map_says() -> None:
    rng = np.random.default_rng(0)
    for case in range(200):
        height, width, objects = rng.integers(1, 12, 3)
        owner = rng.integers(-1 - case % 3, objects, (height, width)).astype(np.int16)
        present = np.unique(owner[owner >= 0])
        owner = np.where(owner >= 0, np.searchsorted(present, owner), -1).astype(np.int16)
        parts = visible_parts(owner, len(present))
        assert len(parts.area) == len(parts.box) == len(present)
        for one in range(len(present)):
            mask = owner == one
            runs = parts.counts[parts.offsets[one] : parts.offsets[one + 1]]
            assert runs.sum() == height * width
            assert (runs[1:] > 0).all()
            values = np.arange(len(runs)) % 2 == 1
            assert (mask == np.repeat(values, runs).reshape(width, height).T).all()
            down, across = np.nonzero(mask)
            assert parts.area[one] == len(down)
            x, y = across.min(), down.min()
            assert parts.box[one].tolist() == [x, y, np.ptp(across) + 1, np.ptp(down) + 1]


def test_a_picture_of_nothing_has_no_annotations() -> None:
    empty = 0
    for seed in range(40):  # some of them are without distractors too
        scene = compose(np.random.default_rng(seed), np.zeros(0, dtype=np.int64), world())
        assert not scene.annotated.any()
        assert describe(scene, 1, "a.jpg").annotations == []
        empty += (scene.owner < 0).all()
    assert empty


def test_an_object_has_the_colour_of_its_class() -> None:
    red = list(COLOURS).index("red")
    blue = list(COLOURS).index("blue")
    disc = list(OUTLINES).index("disc")
    here = World(
        Vocabulary(np.array([[0, 0, red, disc], [0, 0, blue, disc]])),
        np.array([0.5, 1.0]), 160, 4, 1.0,
    )  # fmt: skip
    for _, scene in scenes(20, here, positives=2):
        means = {
            category: scene.pixels[scene.owner == number].mean(axis=0)
            for number, category in enumerate(scene.category.tolist())
        }
        assert means[0][0] > means[0][2] + 20
        assert means[1][2] > means[1][0] + 20


def test_classes_are_different_combinations() -> None:
    assert len(RIMS) * len(FILLS) * len(COLOURS) * len(OUTLINES) == COMBINATIONS
    every = draw_vocabulary(np.random.default_rng(0), COMBINATIONS)
    assert len(set(every.names())) == COMBINATIONS
    assert len(every.unlisted()) == 0
    some = draw_vocabulary(np.random.default_rng(0), 1203)
    assert len(some.unlisted()) == COMBINATIONS - 1203
    both = {tuple(row) for row in [*some.attributes.tolist(), *some.unlisted().tolist()]}
    assert len(both) == COMBINATIONS
    # Rare classes share parts with others: all values of all attributes occur often.
    for column in some.attributes.T:
        assert np.bincount(column).min() >= 20


def test_names_say_the_combination() -> None:
    star, red = list(OUTLINES).index("star"), list(COLOURS).index("red")
    striped = list(FILLS).index("striped")
    rows = np.array([[0, 0, red, star], [0, striped, red, star], [1, striped, red, star]])
    assert Vocabulary(rows).names() == ["red star", "striped red star", "rimmed striped red star"]


def test_outlines_are_within_the_unit_disc_and_differ() -> None:
    inside = []
    for number, loops in enumerate(OUTLINES.values()):
        assert max(np.hypot(*loop.T).max() for loop in loops) <= 1 + 1e-9
        inside.append(stencil(0, 0, number) != OUTSIDE)
        assert 0.08 < inside[-1].mean() < 0.8
        rimmed = stencil(1, 1, number)
        assert {MAIN, SECOND, RIM} <= set(np.unique(rimmed))
    for one in range(len(inside)):
        for other in range(one):
            shared = (inside[one] & inside[other]).sum() / (inside[one] | inside[other]).sum()
            assert shared < 0.95


def test_the_disc_is_as_large_as_a_disc() -> None:
    disc = stencil(0, 0, list(OUTLINES).index("disc"))
    assert (disc != OUTSIDE).mean() == pytest.approx(np.pi / 4, abs=0.01)


def test_counts_fall_along_the_ranks_to_the_total() -> None:
    for classes, images, cells in ((1203, 10_000, 92_000), (30, 200, 1800), (1203, 1000, 9200)):
        counts = tail.expected_images(classes, images, cells)
        assert counts.sum() == pytest.approx(cells, rel=1e-6)
        assert (np.diff(counts) <= 0).all()
        assert 1 <= counts[-1] < 3
        assert counts[0] <= 0.6 * images
    few = tail.expected_images(2, 50, 460)
    assert few.tolist() == [30, 30]


def test_the_default_tail_is_like_that_of_lvis() -> None:
    expected = tail.expected_images(1203, 10_000, 10_000 * 12 / tail.INSTANCES)
    letters = tail.frequency_letters(
        tail.training_counts(np.random.default_rng(0), expected, 10_000)
    )
    assert letters.count("f") == pytest.approx(405, abs=120)
    assert letters.count("c") == pytest.approx(461, abs=120)
    assert letters.count("r") == pytest.approx(337, abs=120)
    assert tail.frequency_letters(np.array([1, 10, 11, 100, 101])) == ["r", "r", "c", "c", "f"]


def test_classes_are_scattered_over_different_images() -> None:
    counts = np.array([5, 1, 3, 0, 20])
    offsets, classes = tail.scatter(np.random.default_rng(0), counts, 20)
    assert np.bincount(classes, minlength=5).tolist() == counts.tolist()
    for begin, end in itertools.pairwise(offsets):
        assert (np.diff(classes[begin:end]) > 0).all()


def test_labels_of_an_image_with_all_classes() -> None:
    positive = np.arange(5)
    labels = draw_labels(np.random.default_rng(0), positive, np.linspace(0.2, 1, 5), 2.0)
    assert len(labels.negative) == 0
    assert labels.first.sum() == 5
    assert labels.annotated[labels.first].all()
