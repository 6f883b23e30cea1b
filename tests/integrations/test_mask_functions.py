"""The mask functions beside pycocotools'."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pycocotools.mask as reference
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from lvdet.errors import InputError
from lvdet.integrations.pycocotools import mask
from oracles.cases import decoded, polygon_case

PIXELS = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.uint8, shape, elements=st.integers(0, 1))
)


@given(PIXELS, st.booleans())
def test_encode_decode_area_box_and_merge_are_pycocotools_s(pixels: Any, intersect: bool) -> None:
    encoded = reference.encode(np.asfortranarray(pixels))
    assert mask.encode(pixels) == encoded
    assert mask.encode(pixels[:, :, 0]) == encoded[0]
    texts = [{**one, "counts": one["counts"].decode()} for one in encoded]
    for form in (encoded, texts):
        np.testing.assert_array_equal(mask.decode(form), pixels)
        np.testing.assert_array_equal(mask.decode(form[0]), pixels[:, :, 0])
        np.testing.assert_array_equal(mask.area(form), reference.area(form))
        assert mask.area(form).dtype == np.uint32
        assert mask.area(form[0]) == reference.area(form[0])
        np.testing.assert_array_equal(mask.toBbox(form), reference.toBbox(form))
        np.testing.assert_array_equal(mask.toBbox(form[0]), reference.toBbox(form[0]))
        merged = mask.merge(form, intersect)
        assert merged == reference.merge(form, intersect)
    assert mask.decode(encoded).dtype == np.uint8
    assert mask.decode(encoded).flags.f_contiguous


@given(PIXELS, PIXELS, st.randoms())
def test_overlaps_of_masks_are_pycocotools_s(dt: Any, gt: Any, rng: random.Random) -> None:
    a, b = (reference.encode(np.asfortranarray(one)) for one in (dt, gt))
    crowd = [rng.randint(0, 1) for _ in b]
    np.testing.assert_array_equal(mask.iou(a, b, crowd), reference.iou(a, b, crowd))


@given(
    arrays(np.float64, (3, 4), elements=st.sampled_from([0.0, 1.0, 2.5, 7.0, 0.1])),
    arrays(np.float64, (2, 4), elements=st.sampled_from([0.0, 1.0, 2.5, 7.0, 0.1])),
)
def test_overlaps_of_boxes_are_pycocotools_s(dt: Any, gt: Any) -> None:
    for a, b in ((dt, gt), (dt.tolist(), gt.tolist())):
        np.testing.assert_array_equal(mask.iou(a, b, [0, 1]), reference.iou(a, b, [0, 1]))
    assert mask.iou([], gt, [0, 0]) == reference.iou([], gt, [0, 0])


@pytest.mark.parametrize("seed", range(40))
def test_polygons_boxes_and_runs_are_encoded_as_pycocotools_does(seed: int) -> None:
    parts, height, width = polygon_case(random.Random(seed))
    size = height, width
    assert mask.frPyObjects(parts, *size) == reference.frPyObjects(parts, *size)
    boxes = np.abs(np.array([part[:4] for part in parts]))
    assert mask.frPyObjects(boxes, *size) == reference.frPyObjects(boxes, *size)
    assert mask.frPyObjects(boxes.tolist(), *size) == reference.frPyObjects(boxes, *size)
    counts = [2, 1, height * width]
    runs = {"size": [1, height * width + 3], "counts": counts}
    assert mask.frPyObjects(runs, *size) == reference.frPyObjects(runs, *size)
    assert mask.frPyObjects([runs], *size) == reference.frPyObjects([runs], *size)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint8])
def test_any_whole_pixels_in_any_order_of_memory(dtype: type) -> None:
    pixels = np.random.default_rng(0).random((12, 10, 3)) < 0.4
    expected = reference.encode(np.asfortranarray(pixels[::2, ::-1].astype(np.uint8)))
    assert mask.encode(pixels.astype(dtype)[::2, ::-1]) == expected
    assert mask.encode(np.zeros((4, 4), dtype=dtype)) == {"size": [4, 4], "counts": b"`0"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(mask.decode(expected[0]), decoded(expected[0]))


def test_what_is_no_mask_is_refused_in_one_line() -> None:
    small, large = (mask.encode(np.ones(shape, bool)) for shape in ((2, 2), (3, 3)))
    for call in (
        lambda: mask.encode(np.zeros(3)),
        lambda: mask.encode(np.zeros((3, 3))),
        lambda: mask.decode({"size": [2, 2], "counts": b"11"}),
        lambda: mask.merge([small, large]),
        lambda: mask.decode([small, large]),
        lambda: mask.iou([small], [[0, 0, 1, 1]], [0]),
        lambda: mask.iou([small], [small], []),
        lambda: mask.area([[[0.0, 0.0, 1.0, 0.0, 1.0, 1.0]]]),
        lambda: mask.frPyObjects([], 3, 3),
        lambda: mask.iou(np.zeros((1, 5)), np.zeros((1, 4)), [0]),
        lambda: mask.frPyObjects([[0, 0, 1]], 3, 3),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert "\n" not in str(error.value)
