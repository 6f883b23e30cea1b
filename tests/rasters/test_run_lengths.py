"""Run lengths against pycocotools."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools import mask as coco

from lvdet.errors import InputError
from lvdet.rasters import run_lengths

# pycocotools' own, with NumPy 2
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


def coco_string(pixels):
    return coco.encode(np.asfortranarray(pixels.astype(np.uint8)))["counts"].decode()


def encode_one(counts):
    return run_lengths.encode(counts, np.array([0, len(counts)]))[0]


def some_masks():
    random = np.random.default_rng(7)
    masks = [np.zeros((1, 1), bool), np.ones((1, 1), bool), np.zeros((37, 5), bool)]
    masks += [np.ones((37, 5), bool), np.ones((480, 640), bool), np.zeros((480, 640), bool)]
    one = np.zeros((480, 640), bool)
    one[479, 639] = True
    crossing = np.zeros((20, 9), bool)
    crossing[18:, 3], crossing[:2, 4] = True, True
    masks += [one, crossing, crossing.T.copy()]
    for share in (0.001, 0.02, 0.5, 0.98):
        masks += [random.random(size) < share for size in ((3, 200), (200, 3), (333, 500))]
    rows, columns = np.mgrid[:900, :1200]
    masks.append((rows - 400) ** 2 + (columns - 700) ** 2 < 300**2)
    return masks


def test_strings_of_many_masks_at_once_are_those_of_pycocotools():
    masks = some_masks()
    counts = [run_lengths.runs(mask) for mask in masks]
    offsets = np.concatenate(([0], np.cumsum([len(c) for c in counts])))
    texts = run_lengths.encode(np.concatenate(counts), offsets)
    assert texts == [coco_string(mask) for mask in masks]
    # a part of a longer table
    assert run_lengths.encode(np.concatenate(counts), offsets[4:9]) == texts[4:8]


@settings(deadline=None, max_examples=300)
@given(hnp.arrays(bool, st.tuples(st.integers(1, 40), st.integers(1, 40))))
def test_there_and_back(pixels):
    text = coco_string(pixels)
    counts = run_lengths.runs(pixels)
    assert encode_one(counts) == text
    np.testing.assert_array_equal(run_lengths.decode(text), counts)
    back = coco.decode({"size": list(pixels.shape), "counts": text}).astype(bool)
    np.testing.assert_array_equal(run_lengths.pixels(counts, *pixels.shape), back)
    np.testing.assert_array_equal(back, pixels)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.lists(
            st.one_of(
                st.integers(0, 2**32 - 1),
                st.sampled_from([0, 1, 15, 16, 31, 32, 511, 512, 2**19, 2**24, 2**31, 2**32 - 1]),
            ),
            max_size=12,
        ),
        max_size=4,
    )
)
def test_any_numbers_come_back(lists):
    """All sizes of numbers, rising and falling, on either side of each further character."""
    offsets = np.concatenate(([0], np.cumsum([len(c) for c in lists], dtype=np.int64)))
    texts = run_lengths.encode(np.array([n for c in lists for n in c], dtype=np.uint32), offsets)
    assert [run_lengths.decode(text).tolist() for text in texts] == lists
    for counts, text in zip(lists, texts, strict=True):
        if counts and sum(counts) < 2**31:
            plain = {"size": [1, sum(counts)], "counts": counts}
            assert text == coco.frPyObjects(plain, 1, sum(counts))["counts"].decode()


@settings(deadline=None, max_examples=200)
@given(
    hnp.arrays(bool, st.tuples(st.integers(1, 12), st.integers(1, 12))),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_bounds_and_columns(pixels, begin, end):
    counts = run_lengths.runs(pixels)
    rows, columns = np.nonzero(pixels)
    expected = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) if len(rows) else None
    found = run_lengths.bounds(counts, pixels.shape[0])
    assert found == expected
    begin, end = sorted((min(begin, pixels.shape[1]), min(end, pixels.shape[1])))
    cut = run_lengths.columns(counts, pixels.shape[0], begin, end)
    np.testing.assert_array_equal(cut, pixels[:, begin:end])


def test_bounds_of_an_object_are_tight():
    pixels = np.zeros((50, 40), bool)
    pixels[10:20, 5:8] = True
    pixels[12, 20] = True
    assert run_lengths.bounds(run_lengths.runs(pixels), 50) == (5, 10, 21, 20)
    # runs of no pixels, as some tools write them
    assert run_lengths.bounds(np.array([30, 0, 10, 5, 3, 0, 2]), 50) == (0, 40, 1, 45)
    assert run_lengths.bounds(np.array([30, 0, 20]), 50) is None


def test_text_may_be_bytes_and_no_masks_are_no_strings():
    assert run_lengths.decode(b"04").tolist() == [0, 4]
    assert run_lengths.encode(np.zeros(0, np.uint32), np.zeros(1, np.int64)) == []
    assert run_lengths.encode(np.zeros(0, np.uint32), np.zeros(3, np.int64)) == ["", ""]
    assert run_lengths.decode("").tolist() == []


@pytest.mark.parametrize("text", ["é", "0 4", "0P", "0~", "PPPPPPPPP1", "05N"])
def test_damaged_text_is_an_input_error(text):
    with pytest.raises(InputError, match=r"^run lengths .*") as error:
        run_lengths.decode(text)
    assert "\n" not in str(error.value)


def test_wrong_number_of_pixels_is_an_input_error():
    with pytest.raises(InputError, match="run lengths have 5 pixels, expected 2 x 3 = 6"):
        run_lengths.pixels(np.array([2, 3]), 2, 3)
