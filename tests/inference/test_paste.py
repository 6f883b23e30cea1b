"""Pasted masks are those of Detectron2: the whole image by `grid_sample`, and pycocotools."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pycocotools import mask as coco

import lvdet
from inference.brute_force import pasted
from lvdet import _native
from lvdet.inference.paste import paste
from lvdet.tables.masks import Masks
from oracles.cases import decoded
from thread_setting import on_threads

torch.set_num_threads(1)

Case = tuple[torch.Tensor, NDArray[np.float64], NDArray[np.int64]]


def random_masks(seed: int, count: int, side: int = 28) -> Case:
    """Maps, boxes and sizes."""
    rng = np.random.default_rng(seed)
    return random_maps(rng, count, side), *random_boxes(rng, count)


def random_maps(rng: np.random.Generator, count: int, side: int) -> torch.Tensor:
    """Noise, ones, zeros, both, values around 0.5, and smooth ones."""
    kind = rng.integers(0, 6, count)
    chance = rng.random((count, side, side))
    chance[kind == 1] = 1.0
    chance[kind == 2] = 0.0
    chance[kind == 3] = chance[kind == 3] > 0.4
    chance[kind == 4] = 0.5 + (chance[kind == 4] - 0.5) * 1e-3
    where = (np.arange(side) + 0.5) / side
    centre, reach = rng.random((2, count, 1)), rng.uniform(0.1, 0.7, (count, 1, 1))
    away = np.hypot((where - centre[0])[:, :, None], (where - centre[1])[:, None, :])
    smooth = 1 / (1 + np.exp((away - reach) * 15))
    chance[kind == 5] = smooth[kind == 5]
    return torch.tensor(chance).float()


def random_boxes(
    rng: np.random.Generator, count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Some boxes reach far out of their images; some are tiny, empty or the whole image."""
    size = rng.integers(1, 60, (count, 2))
    size[rng.random((count, 2)) < 0.1] = 1
    limit = size[:, ::-1]
    corner = rng.uniform(-0.1, 1, (count, 2)) * limit
    extent = rng.uniform(0, 1.1, (count, 2)) ** 2 * limit + 1e-3
    box = np.concatenate([corner, corner + extent], axis=1)
    whole = rng.random(count) < 0.2
    box[whole] = np.concatenate([np.zeros_like(limit), limit], axis=1)[whole]
    at_half = rng.random(count) < 0.3
    box[at_half] = np.round(box[at_half] * 2) / 2 + [0, 0, 0.5, 0.5]
    tiny = rng.random(count) < 0.1
    box[tiny, 2:] = box[tiny, :2] + rng.uniform(1e-9, 1, (count, 2))[tiny]
    wide = rng.random(count) < 0.1
    box[wide] += (rng.uniform(0, 3000, (count, 4)) * [-1, -1, 1, 1])[wide]
    empty = rng.random(count) < 0.05
    box[empty, 2] = box[empty, 0]
    return box, size


def assert_pasted(masks: Masks, chance: torch.Tensor, box: NDArray[np.float64]) -> None:
    """Pixel for pixel, but where the value is within 1e-6 of 0.5."""
    assert len(masks) == len(box)
    for row in range(len(masks)):
        height, width = int(masks.height[row]), int(masks.width[row])
        text = masks.row(row).decode()
        pixels = decoded({"size": [height, width], "counts": text}).astype(bool)
        # The text is what pycocotools makes of these pixels.
        assert coco.encode(np.asfortranarray(pixels))["counts"].decode() == text
        value = pasted(chance[row], box[row], height, width).numpy()
        wrong = pixels != (value >= 0.5)
        assert (np.abs(value[wrong] - 0.5) < 1e-6).all()


def runs_of(masks: Masks) -> list[list[int]]:
    """The lengths in each mask, column by column, zeros first."""
    counts, offsets = _native.mask_runs(masks.columns, masks.height, masks.width, False)
    return [part.tolist() for part in np.split(counts, offsets[1:-1])]


@settings(max_examples=80)
@given(st.integers(0, 10**6), st.integers(0, 12), st.sampled_from([1, 2, 7, 28, 56]))
def test_as_in_whole_images(seed: int, count: int, side: int) -> None:
    chance, box, size = random_masks(seed, count, side)
    masks = paste(chance, box, size)
    assert np.stack([masks.height, masks.width], axis=1).tolist() == size.tolist()
    assert_pasted(masks, chance, box)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200))
def test_as_in_many_whole_images(seed: int) -> None:
    for side in (1, 2, 3, 7, 14, 28, 56):
        chance, box, size = random_masks(10**7 + seed, 50, side)
        assert_pasted(paste(chance, box, size), chance, box)


def test_boxes_of_3000_pixels() -> None:
    rng = np.random.default_rng(0)
    chance = random_maps(rng, 12, 28)
    size = np.array([[3100, 7], [7, 3100], [40, 3000]] * 4)
    corner = rng.uniform(-50, 80, (12, 2))
    box = np.concatenate([corner, corner + rng.uniform(2900, 3000, (12, 2))], axis=1)
    box[::2, :] += np.where(size[::2] == 7, -1400, 0)[:, [1, 0, 1, 0]]
    assert_pasted(paste(chance, box, size), chance, box)


def test_images_of_10_to_the_12_pixels() -> None:
    """Runs that 32 bits cannot count, far from the origin; nothing has as many bytes."""
    rng = np.random.default_rng(1)
    chance = random_maps(rng, 20, 28)
    corner = np.round(rng.uniform(5, 20, (20, 2)) * 64) / 64
    box = np.concatenate([corner, corner + np.round(rng.uniform(1, 70, (20, 2)))], axis=1)
    near = paste(chance, box, np.full((20, 2), 100))
    assert_pasted(near, chance, box)
    side, shift = 10**6, 10**6 - 100
    far = paste(chance, box + shift, np.full((20, 2), side))
    for there, here in zip(runs_of(far), runs_of(near), strict=True):
        assert sum(there) == side**2
        assert pieces(there, side, shift) == pieces(here, 100, 0)


def pieces(runs: list[int], height: int, shift: int) -> set[tuple[int, int, int]]:
    """Column, first row and end of the object in each column, moved back by `shift`."""
    found, begin = set(), 0
    for run, inside in zip(runs, [False, True] * len(runs), strict=False):
        end = begin + run
        while inside and begin < end:
            stop = min(end, (begin // height + 1) * height)
            column, row = divmod(begin, height)
            found.add((column - shift, row - shift, row + stop - begin - shift))
            begin = stop
        begin = end
    return found


def test_full_and_empty() -> None:
    """Runs continue from column to column, and begin with zeros."""
    chance = torch.stack([torch.ones(28, 28), torch.zeros(28, 28), torch.ones(28, 28)])
    box = np.array([[0.0, 0, 6, 4], [0, 0, 6, 4], [2, 0, 4, 4]])
    assert runs_of(paste(chance, box, np.array([[4, 6]] * 3))) == [[0, 24], [24], [8, 8, 8]]


def test_no_masks() -> None:
    masks = paste(torch.ones(0, 28, 28), np.zeros((0, 4)), np.zeros((0, 2), dtype=np.int64))
    assert len(masks) == 0


def test_exactly_half_belongs_to_the_object() -> None:
    """At the edge of a box whose map is 1 the value is 0.5."""
    box = np.array([[1.5, 1.5, 3.5, 3.5]])
    masks = paste(torch.ones(1, 28, 28), box, np.array([[6, 6]]))
    assert_pasted(masks, torch.ones(1, 28, 28), box)
    # The middles of pixels 1 and 3 lie on the box, where only the corner is less: a quarter.
    assert sum(runs_of(masks)[0][1::2]) == 5


def test_a_map_of_one_value_stays_as_it_is() -> None:
    """Between equal values there is nothing else: 0.5 is 0.5 wherever pixels are."""
    corner = np.random.default_rng(0).random((40, 2))
    box = np.concatenate([corner - 5, corner * 7 + 40], axis=1)
    masks = paste(torch.full((40, 28, 28), 0.5), box, np.array([[30, 31]] * 40))
    assert runs_of(masks) == [[0, 930]] * 40


@pytest.mark.parametrize(
    "box",
    [
        [2, 2, 2, 5],
        [2, 2, 5, 2],
        [2.5, 2.5, 2.5, 2.5],
        [5, 2, 2, 5],
        [2, 5, 5, 2],
        [np.nan, 2, 5, 5],
        [2, 2, np.inf, 5],
        [2, -np.inf, 5, np.inf],
        [10, 2, 14, 5],
        [2, -9, 5, -1],
    ],
    ids=str,
)
def test_boxes_without_pixels(box: list[float]) -> None:
    """Without an area, the wrong way round, not finite, or outside the image."""
    masks = paste(torch.ones(1, 28, 28), np.array([box], dtype=float), np.array([[7, 9]]))
    assert runs_of(masks) == [[63]]


@pytest.mark.parametrize("far", [1e6, 1e12, 1e18, 1e300, 1.7e308])
def test_boxes_far_beyond_the_image(far: float) -> None:
    chance = random_maps(np.random.default_rng(2), 30, 28)
    box = np.repeat([[-far, -far, far, far], [-far, 2, far, 5], [-far, -1, 3, 9]], 10, axis=0)
    assert_pasted(paste(chance, box, np.full((30, 2), 8)), chance, box)


def test_values_that_are_not_finite() -> None:
    """The pixels around one are not the object's; the others are what they would be."""
    rng = np.random.default_rng(3)
    chance = torch.tensor(rng.random((60, 7, 7))).float()
    box, size = random_boxes(rng, 60)
    # No pixel's centre is at a value itself, where rounding decides which others are around it.
    box += rng.uniform(0, 0.01, (60, 1))
    for bad in (torch.nan, torch.inf, -torch.inf):
        chance[torch.tensor(rng.random(chance.shape) < 0.05)] = bad
    nan = torch.where(chance.isfinite(), chance, torch.nan)
    masks = paste(chance, box, size)
    assert_pasted(masks, nan, box)
    assert (masks.data == paste(nan, box, size).data).all()
    assert runs_of(paste(torch.full((1, 7, 7), torch.inf), box[:1], size[:1])) == [
        [int(size[0].prod())]
    ]


def test_threads_change_no_byte() -> None:
    chance, box, size = random_masks(4, 100)
    one, two, five = on_threads(lambda: paste(chance, box, size), 1, 2, 5)
    assert len(one.data) > 1000
    for other in (two, five):
        assert (one.data.tobytes(), one.offsets.tolist()) == (
            other.data.tobytes(),
            other.offsets.tolist(),
        )


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_maps_of_other_kinds_of_numbers(kind: torch.dtype) -> None:
    chance, box, size = random_masks(5, 30)
    rounded = chance.to(kind)
    assert_pasted(paste(rounded, box, size), rounded, box)


def test_maps_in_another_order_in_memory() -> None:
    chance, box, size = random_masks(6, 30)
    assert_pasted(paste(chance.mT, box, size), chance.mT, box)


def test_what_does_not_belong_together_is_refused() -> None:
    chance, box, size = random_masks(7, 3)
    for maps, boxes, sizes in (
        (chance[:2], box, size),
        (chance[:, :5], box, size),
        (chance[None], box, size),
        (chance, box[:2], size),
        (chance, box[:, :3], size),
        (chance, box, size[:, 0]),
    ):
        with pytest.raises(lvdet.InputError, match=r"paste: maps are \[.*\], boxes \["):
            paste(maps, boxes, sizes)


@pytest.mark.parametrize("side", [-1, 0, 10**6 + 1, 2**31])
def test_images_that_cannot_be_are_refused(side: int) -> None:
    chance, box, size = random_masks(8, 3)
    size[1] = 7, side
    with pytest.raises(lvdet.InputError, match=rf"mask 1 has 7 x {side} pixels, expected 1 to"):
        paste(chance, box, size)
