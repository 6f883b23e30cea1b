"""Masks from pixels, byte by byte those of pycocotools."""

from __future__ import annotations

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

import lvdet
from lvdet.files import bitmaps
from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.files.records import masks_from_segmentations
from lvdet.tables.masks import RLE

shapes = array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=9)


def assert_encoded(masks: lvdet.Masks, pixels: NDArray[np.uint8]) -> None:
    rles = [coco_mask.encode(np.asfortranarray(one)) for one in pixels]
    assert [masks.row(row) for row in range(len(masks))] == [rle["counts"] for rle in rles]
    sizes = zip(masks.height.tolist(), masks.width.tolist(), strict=True)
    assert [list(size) for size in sizes] == [list(rle["size"]) for rle in rles]
    assert (masks.kind == RLE).all()


@settings(max_examples=200)
@given(arrays(np.bool_, shapes), st.sampled_from([1, 20, 1 << 24]))
def test_as_pycocotools_encodes(pixels: NDArray[np.bool_], at_a_time: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitmaps, "PIXELS", at_a_time)
        masks = masks_from_bitmaps(pixels)
        assert_encoded(masks, pixels.astype(np.uint8))
        assert_encoded(masks_from_bitmaps(pixels.astype(np.uint8) * 255), pixels.astype(np.uint8))


def test_any_memory_order() -> None:
    pixels = np.random.default_rng(0).random((5, 40, 30)) < 0.3
    expected = masks_from_bitmaps(pixels).data
    for other in (np.asfortranarray(pixels), pixels.transpose(0, 2, 1).copy().transpose(0, 2, 1)):
        assert np.array_equal(masks_from_bitmaps(other).data, expected)


def test_large_blobs() -> None:
    y, x = np.mgrid[:480, :640]
    pixels = np.stack([(x - 300) ** 2 + (y - 200) ** 2 < r * r for r in (0, 1, 50, 210, 900)])
    assert_encoded(masks_from_bitmaps(pixels), pixels.astype(np.uint8))


def test_no_masks() -> None:
    assert len(masks_from_bitmaps(np.zeros((0, 5, 4), dtype=np.bool_))) == 0


@pytest.mark.parametrize(
    "pixels",
    [
        np.zeros((2, 5)),
        np.zeros((2, 1, 5, 4), np.uint8),
        np.zeros((2, 5, 4)),
        np.ones((2, 0, 4), int),
    ],
)
def test_what_is_no_bitmap(pixels: NDArray[np.generic]) -> None:
    with pytest.raises(lvdet.InputError, match="masks"):
        masks_from_bitmaps(pixels)


@settings(max_examples=100)
@given(arrays(np.bool_, shapes))
def test_there_and_back(pixels: NDArray[np.bool_]) -> None:
    back = bitmaps.bitmaps_from_masks(masks_from_bitmaps(pixels))
    assert np.array_equal(np.array(back).reshape(pixels.shape), pixels)


def test_polygons_are_those_of_pycocotools() -> None:
    parts = [[1.2, 1.0, 8.4, 2.0, 7.0, 6.9, 2.0, 5.0], [5.0, 5.0, 9.0, 5.0, 9.0, 8.0]]
    masks = masks_from_segmentations([parts], "masks")
    masks.height[:], masks.width[:] = 9, 11
    (found,) = bitmaps.bitmaps_from_masks(masks)
    expected = coco_mask.merge(coco_mask.frPyObjects(parts, 9, 11))
    assert coco_mask.encode(np.asfortranarray(found.astype(np.uint8))) == expected
