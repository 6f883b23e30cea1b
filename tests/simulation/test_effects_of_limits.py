"""The paper's findings on a detector that is perfectly calibrated: they are the measure's doing.

Its class limit of 10,000 belongs to 19,809 images; for 300 images that is about 150.
"""

from __future__ import annotations

import pytest

import lvdet
from long_cases import first

CLASS_LIMIT = 150


def rise(images: int, classes: int, seed: int, objects: float | None = None) -> float:
    """How much AP a limit of 300 per image costs."""
    gt, dt = lvdet.simulate(
        images, classes, dets_per_image=None, objects_per_image=objects, seed=seed
    )
    delta = lvdet.sweep(gt, dt, dets_per_image=[300, None]).rows[1].delta
    assert delta is not None
    return delta["AP"]


@pytest.mark.parametrize("seed", first(1, range(5)))
def test_reranking_raises_ap_old_and_never_ap_fixed(seed: int) -> None:
    gt, dt = lvdet.simulate(300, 1203, dets_per_image=None, bias=0.0, seed=seed)
    before, after = lvdet.sweep(gt, dt, dets_per_image=300, rerank=CLASS_LIMIT).rows
    assert after.metrics["AP"] > before.metrics["AP"] + 0.01
    assert after.metrics["APr"] > before.metrics["APr"] + 0.02
    for cap in (50, CLASS_LIMIT, 400):
        reranked = lvdet.rerank(gt, dt, dets_per_class=cap)
        again = lvdet.evaluate(gt, reranked.detections, protocols="fixed")["fixed"]
        assert reranked.after["fixed"]["AP"] == again.AP
        assert reranked.before["fixed"]["AP"] >= again.AP


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_the_effect_grows_with_the_number_of_classes(seed: int) -> None:
    few, more, many = (rise(250, classes, seed) for classes in (300, 600, 1203))
    assert abs(few) < 0.001
    assert few + 0.001 < more
    assert more + 0.02 < many


@pytest.mark.parametrize("seed", first(1, range(4)))
def test_the_effect_grows_with_objects_per_class(seed: int) -> None:
    few, more, many = (rise(250, 800, seed, objects) for objects in (12, 48, 150))
    assert few + 0.005 < more
    assert more + 0.005 < many


def test_small_vocabularies_lose_nothing() -> None:
    """COCO's 80 classes: the limit costs less than a tenth of a point."""
    gt, dt = lvdet.simulate(250, 80, dets_per_image=None, style="coco", seed=0)
    rows = lvdet.sweep(gt, dt, dets_per_image=[300, None]).rows
    assert rows[1].delta is not None
    assert abs(rows[1].delta["AP"]) < 0.001
