"""The samplers against their formulas."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import pytest

from lvdet.errors import InputError
from lvdet.training.configuration import config
from lvdet.training.samplers import build_sampler, stream
from lvdet.training.samplers.class_aware import ClassAware
from lvdet.training.samplers.repeat_factor import RepeatFactor, repeat_factors
from lvdet.training.samplers.uniform import Uniform


def long_tail(images=400, classes=30, seed=0):
    """Classes of each image, class k in about 1 / (k + 1) of them, some images without any."""
    random = np.random.default_rng(seed)
    shares = 1 / (1 + np.arange(classes))
    return [np.flatnonzero(random.random(classes) < shares * 0.8) for _ in range(images)]


class MadeDataset:
    name = "train"

    def __init__(self, image_classes):
        self.image_classes = image_classes
        self.trainable = np.flatnonzero([len(classes) for classes in image_classes])

    def __len__(self):
        return len(self.image_classes)


def samplers():
    data = MadeDataset(long_tail())
    return [
        build_sampler(config.Sampler(name, threshold=0.1), data)
        for name in ("uniform", "repeat_factor", "class_aware")
    ]


def test_repeat_factors_are_the_formula():
    image_classes = long_tail()
    images = {}
    for image, classes in enumerate(image_classes):
        for name in classes:
            images.setdefault(name, set()).add(image)
    expected = [
        max([max(1, (0.1 / (len(images[name]) / 400)) ** 0.5) for name in classes], default=1)
        for classes in image_classes
    ]
    assert max(expected) > 2
    np.testing.assert_allclose(repeat_factors(image_classes, 400, 0.1), expected, rtol=1e-12)


def test_the_paper_s_threshold():
    """A class in 1 of 10,000 images: sqrt(0.001 / 0.0001) = 3.162."""
    factors = repeat_factors([np.array([5, 2]), np.array([2])] + [np.array([2])] * 10, 10_000, 1e-3)
    assert factors[0] == pytest.approx(10**0.5)
    assert factors[1] == 1


def test_repeat_factor_rounds_at_random():
    rows, factors = np.array([3, 5, 8, 9]), np.array([1.0, 1.25, 2.5, 3.9])
    sampler = RepeatFactor(rows, factors)
    epochs = 2000
    counts = np.array(
        [np.bincount(sampler.epoch(number, 11), minlength=10)[rows] for number in range(epochs)]
    )
    assert np.all((counts >= np.floor(factors)) & (counts <= np.ceil(factors)))
    fraction = factors % 1
    tolerance = 5 * np.sqrt(fraction * (1 - fraction) / epochs) + 1e-12
    assert np.all(np.abs(counts.mean(axis=0) - factors) <= tolerance)
    # images are rounded independently of each other
    assert abs(np.corrcoef(counts[:, 1:].T)[np.triu_indices(3, 1)]).max() < 0.1


def test_uniform_is_every_image_once():
    rows = np.array([2, 4, 5, 7, 11])
    orders = [tuple(Uniform(rows).epoch(number, 0)) for number in range(400)]
    assert all(sorted(order) == rows.tolist() for order in orders)
    firsts = Counter(order[0] for order in orders)
    assert set(firsts) == set(rows.tolist())
    assert max(firsts.values()) < 130  # 80 on average


def test_class_aware_is_every_class_once_and_its_images_in_turn():
    sizes = {0: 4, 3: 1, 4: 7}  # classes 1 and 2 have no images
    image_classes = [np.array([name]) for name, size in sizes.items() for _ in range(size)]
    rows = np.arange(100, 112)
    class_of = dict(zip(rows.tolist(), [int(c[0]) for c in image_classes], strict=True))
    sampler = ClassAware(rows, image_classes)
    given = {name: [] for name in sizes}
    orders = set()
    for number in range(56):
        epoch = sampler.epoch(number, 5).tolist()
        assert sorted(class_of[image] for image in epoch) == [0, 3, 4]
        orders.add(tuple(class_of[image] for image in epoch))
        for image in epoch:
            given[class_of[image]].append(image)
    assert len(orders) == 6
    for name, size in sizes.items():
        cycles = {tuple(given[name][at : at + size]) for at in range(0, 56, size)}
        assert all(len(set(cycle)) == size for cycle in cycles)
        assert len(cycles) > 1 or size == 1  # shuffled anew


def test_class_aware_counts_an_image_for_each_of_its_classes():
    sampler = ClassAware(np.array([0, 1]), [np.array([0, 1, 2]), np.array([2])])
    counts = np.bincount(np.concatenate([sampler.epoch(number, 0) for number in range(10)]))
    assert counts.tolist() == [25, 5]


@pytest.mark.parametrize("place", range(3))
def test_epochs_depend_on_number_and_seed_alone(place):
    sampler, fresh = samplers()[place], samplers()[place]
    expected = [sampler.epoch(number, 1) for number in range(20)]
    for number in (13, 2, 19, 3):
        sampler.epoch(number + 1, 4)
        np.testing.assert_array_equal(fresh.epoch(number, 1), expected[number])
        np.testing.assert_array_equal(sampler.epoch(number, 1), expected[number])
        assert fresh.size(number, 1) == len(expected[number])
        assert expected[number].dtype == np.int64
    assert expected[0].tolist() != expected[1][: len(expected[0])].tolist()
    assert sampler.epoch(0, 2).tolist() != expected[0].tolist()
    assert sampler.epoch(0, -1).tolist() != expected[0].tolist()  # any number is a seed


@pytest.mark.parametrize("place", range(3))
def test_a_stream_begins_anywhere(place):
    sampler = samplers()[place]
    epochs = [sampler.epoch(number, 9) for number in range(4)]
    whole = np.concatenate(epochs).tolist()
    for start in (0, 1, len(epochs[0]) - 1, len(epochs[0]), len(epochs[0]) + 1, len(whole) - 3):
        assert list(islice(stream(sampler, 9, start), len(whole) - start)) == whole[start:]


def test_the_end_of_a_long_run_draws_one_epoch(monkeypatch):
    """Resuming must not draw the epochs before."""
    random = np.random.default_rng(0)
    sampler = ClassAware(np.arange(2_000), list(random.integers(0, 120, (2_000, 5))))
    drawn, epoch = [], ClassAware.epoch
    monkeypatch.setattr(ClassAware, "epoch", lambda self, *at: drawn.append(at) or epoch(self, *at))
    next(stream(sampler, 0, 18_000 * 16))
    assert len(drawn) == 1
    assert drawn[0][0] > 100


def test_samplers_leave_out_images_without_objects():
    image_classes = [np.array([0]), np.zeros(0, int), np.array([1]), np.array([0])]
    for name in ("uniform", "repeat_factor", "class_aware"):
        sampler = build_sampler(config.Sampler(name), MadeDataset(image_classes))
        seen = set(np.concatenate([sampler.epoch(number, 0) for number in range(20)]).tolist())
        assert seen == {0, 2, 3}


def test_repeat_factors_do_not_count_images_without_objects():
    """1 of 2 images has class 1: sqrt(1 / (1 / 2)) = 1.41, of 4 it would be 2."""
    image_classes = [np.array([0, 1]), np.array([0]), np.zeros(0, int), np.zeros(0, int)]
    sampler = build_sampler(config.Sampler("repeat_factor", 1.0), MadeDataset(image_classes))
    np.testing.assert_allclose(sampler.factors, [2**0.5, 1])


def test_errors():
    with pytest.raises(InputError, match="train: none of the 2 images has an object"):
        build_sampler(config.Sampler(), MadeDataset([np.zeros(0, int)] * 2))
    with pytest.raises(InputError, match="no image has an object to train on"):
        next(stream(RepeatFactor(np.zeros(0, np.int64), np.zeros(0)), seed=1))
    with pytest.raises(InputError, match=r"sampler\.name is 'rfs', expected repeat_factor"):
        build_sampler(config.Sampler("rfs"), MadeDataset([np.array([1])]))
