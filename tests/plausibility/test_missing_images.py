"""Images that were never run, told from those where nothing was found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lvdet
from lvdet.plausibility.missing_images import missing_images
from lvdet.tables.results import Results
from tabled import Tables


@pytest.fixture(scope="module")
def honest() -> Tables:
    return lvdet.simulate(images=200, classes=60, dets_per_image=None, seed=1)


@pytest.mark.parametrize(
    ("step", "says"), [(2, "every 2nd"), (3, "every 3rd"), (4, "every 4th"), (8, "every 8th")]
)
def test_first_of_each_batch(honest: Tables, step: int, says: str) -> None:
    gt, dt = honest
    (found,) = missing_images(gt, Results.of(dt[dt.image % step == 0]))
    assert found.count == 200 - -(-200 // step)
    assert found.evidence["first_image_id"] == gt.images.ids[1]
    assert says in found.sentence


@pytest.mark.parametrize("scale", [0, 1, 2])
def test_few_detections_per_image_and_the_rest_missing(honest: Tables, scale: int) -> None:
    """With few per image a stretch of silence has to be long."""
    gt, dt = honest
    low = dt[dt.score > (0.3, 0.4, 0.5)[scale]]
    assert missing_images(gt, Results.of(low)) == []
    (found,) = missing_images(gt, Results.of(low[low.image < 100]))
    assert found.count >= 90
    assert "by id" in found.sentence or "median" in found.sentence


@pytest.mark.parametrize("seed", range(20))
def test_an_image_or_two_are_not_spoken_of(honest: Tables, seed: int) -> None:
    gt, dt = honest
    gone = np.random.default_rng(seed).permutation(200)[:2]
    assert missing_images(gt, Results.of(dt[~np.isin(dt.image, gone)])) == []


@pytest.mark.parametrize("place", range(10))
def test_a_detector_of_one_class_finds_nothing_elsewhere(honest: Tables, place: int) -> None:
    """It has many detections where it has any."""
    gt, dt = honest
    kind = np.argsort(-np.bincount(gt.category))[place]
    has = np.zeros(len(gt.images), dtype=bool)
    has[gt.image[gt.category == kind]] = True
    rows = has[np.searchsorted(gt.images.ids, dt.image_ids)][dt.image]
    only = replace(dt, category_ids=np.full_like(dt.category_ids, gt.categories.ids[kind]))
    assert missing_images(gt, Results.of(only[rows])) == []


def test_images_without_objects_may_be_silent(honest: Tables) -> None:
    gt, dt = honest
    silent = gt.where(gt.image % 3 > 0)
    assert missing_images(silent, Results.of(dt[dt.image % 3 > 0])) == []
