"""Rows that move to another class are put where a full sort would have them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lvdet.diagnosis.costs import _ranked_again
from lvdet.diagnosis.kinds import Rows


@pytest.mark.parametrize("seed", range(60))
def test_moved_rows_are_ranked_as_by_a_full_sort(seed: int) -> None:
    """With few scores most rows are tied; with many hardly any is."""
    rng = np.random.default_rng(seed)
    count, classes, images = int(rng.integers(0, 80)), 4, 3
    ids = rng.permutation(images) + 10
    image = rng.integers(0, images, count)
    score = rng.integers(0, (2, 5, 1000)[seed % 3], count) / 7
    category = rng.integers(0, classes, count).astype(np.int32)
    detection = rng.permutation(count).astype(np.int32)
    ranked = np.lexsort((detection, ids[image[detection]], -score, category))
    score, category, detection = score[ranked], category[ranked], detection[ranked]
    nothing = np.zeros(count)
    rows = Rows(detection, category, nothing.astype(np.uint8), detection, nothing)
    pair: Any = SimpleNamespace(
        gt=SimpleNamespace(categories=range(classes)),
        results=SimpleNamespace(detections=SimpleNamespace(image=image, image_ids=ids)),
    )
    kept = rng.random(count) < 0.9
    moved = rng.random(count) < rng.choice([0.0, 0.1, 0.5, 1.0])
    new = np.where(moved, rng.integers(0, classes, count), category).astype(np.int32)

    found = _ranked_again(pair, rows, score, new, kept)
    places = np.flatnonzero(kept)
    at = detection[places]
    keys = (at, ids[image[at]], -score[places], new[places])
    assert found.tolist() == places[np.lexsort(keys)].tolist()
