"""Polygons, boxes of masks and boundaries against pycocotools and faster-coco-eval."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from lvdet import _native
from lvdet.files.records import masks_from_segmentations
from oracles.boundary_reference import boundary_ious, evaluate_boundary
from oracles.cases import coco_case, decoded, polygon_case, runs_of
from tabled import assert_agree, read_case


def native_runs(masks: lvdet.Masks, height: int, width: int, *, edges: bool) -> list[list[int]]:
    sizes = np.full(len(masks), height, np.int32), np.full(len(masks), width, np.int32)
    counts, offsets = _native.mask_runs(masks.columns, *sizes, edges)
    return [counts[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def compressed(runs: list[int]) -> bytes:
    offsets = np.array([0, len(runs)], dtype=np.int64)
    return _native.rle_encode(np.array(runs, dtype=np.uint32), offsets)[0].tobytes()


@pytest.mark.parametrize("batch", range(8))
def test_polygons_run_for_run(batch: int) -> None:
    rng = random.Random(batch)
    for _ in range(400):
        parts, height, width = polygon_case(rng)
        rle = coco_mask.merge(coco_mask.frPyObjects(parts, height, width))
        masks = masks_from_segmentations([parts])
        runs = native_runs(masks, height, width, edges=False)[0]
        assert compressed(runs) == rle["counts"], (parts, height, width)


def random_rles(rng: np.random.Generator, count: int, height: int, width: int) -> list[dict]:
    """Blobs of all sizes: unions of boxes, some touching the border, some with holes."""
    rles = []
    for _ in range(count):
        pixels = np.zeros((height, width), dtype=np.uint8)
        for _ in range(rng.integers(0, 4)):
            y, x = rng.integers(-5, height), rng.integers(-5, width)
            h, w = rng.integers(1, height + 1), rng.integers(1, width + 1)
            pixels[max(y, 0) : y + h, max(x, 0) : x + w] ^= 1
        rles.append(coco_mask.encode(np.asfortranarray(pixels)))
    return rles


def test_boxes_of_masks() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        height, width = rng.integers(1, 90, 2).tolist()
        rles = random_rles(rng, 5, height, width)
        boxes = _native.mask_boxes(masks_from_segmentations(rles).columns)
        assert np.array_equal(boxes, coco_mask.toBbox(rles).reshape(-1, 4))


def test_compressed_strings_round_trip() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        height, width = rng.integers(1, 200, 2).tolist()
        for rle in random_rles(rng, 5, height, width):
            runs = native_runs(masks_from_segmentations([rle]), height, width, edges=False)[0]
            assert runs == runs_of(decoded(rle))


def dilation(height: int, width: int) -> int:
    return max(1, round(0.02 * np.sqrt(height**2 + width**2)))


def test_boundaries_pixel_by_pixel() -> None:
    """A pixel is of the boundary if one within reach, in both axes, is outside the mask."""
    rng = np.random.default_rng(2)
    for _ in range(60):
        height, width = rng.integers(1, 150, 2).tolist()
        reach = dilation(height, width)
        rles = random_rles(rng, 3, height, width)
        runs = native_runs(masks_from_segmentations(rles), height, width, edges=True)
        for rle, found in zip(rles, runs, strict=True):
            pixels = decoded(rle)
            padded = np.pad(pixels, reach)
            inner = np.ones_like(pixels)
            for dy in range(2 * reach + 1):
                for dx in range(2 * reach + 1):
                    inner &= padded[dy : dy + height, dx : dx + width]
            assert found == runs_of(pixels - inner), (height, width)


def test_boundary_iou_of_pairs() -> None:
    rng = np.random.default_rng(3)
    checked = 0
    while checked < 80:
        height, width = rng.integers(20, 300, 2).tolist()
        if abs(0.02 * np.hypot(height, width) % 1 - 0.5) < 1e-6:
            continue  # exactly half a pixel is rounded otherwise there; see its docstring
        checked += 1
        dt, gt = random_rles(rng, 3, height, width), random_rles(rng, 3, height, width)
        expected = boundary_ious(dt, gt, [0, 0, 0])
        dt_edges = native_runs(masks_from_segmentations(dt), height, width, edges=True)
        gt_edges = native_runs(masks_from_segmentations(gt), height, width, edges=True)
        whole = coco_mask.iou(dt, gt, [0, 0, 0])
        for i, a in enumerate(dt_edges):
            for j, b in enumerate(gt_edges):
                inside_a = np.repeat(np.arange(len(a)) % 2 == 1, a)
                inside_b = np.repeat(np.arange(len(b)) % 2 == 1, b)
                union = (inside_a | inside_b).sum()
                edge = (inside_a & inside_b).sum() / union if union else 0.0
                assert min(whole[i, j], edge) == expected[i, j]


@pytest.mark.parametrize("batch", range(6))
def test_boundary_evaluation(batch: int, tmp_path: Path) -> None:
    for seed in range(batch * 25, (batch + 1) * 25):
        annotations, results = coco_case(seed, True)
        gt, dt = read_case(annotations, results, tmp_path)
        ours = lvdet.evaluate(gt, dt, iou="boundary", protocols=["old"], exact_lvis=True)
        reference = evaluate_boundary(annotations, results)
        assert_agree(ours["old"], reference, f"seed {seed}")


@st.composite
def run_lists(draw: st.DrawFn) -> list[int]:
    """Runs that differ little from those two before them for a while, and then much: one character
    of the compressed string, or more. They fill columns of 1,000 pixels."""
    runs = [draw(st.integers(1, 60)), draw(st.integers(0, 60))]
    small = st.lists(st.integers(-16, 15), max_size=70)
    large = st.lists(st.integers(-(10**5), 10**5), max_size=3)
    for steps in draw(st.lists(small | large, max_size=5)):
        for step in steps:
            runs.append(max(runs[-2] + step, 0))
    return [*runs, -sum(runs) % 1000]


@given(run_lists())
def test_numbers_of_any_length(runs: list[int]) -> None:
    height, width = 1000, sum(runs) // 1000
    rle = coco_mask.frPyObjects({"size": [height, width], "counts": runs}, height, width)
    assert native_runs(masks_from_segmentations([rle]), height, width, edges=False)[0] == runs
    with pytest.raises(lvdet.InputError, match="runs do not add up to its size"):
        masks_from_segmentations([rle | {"size": [height + 1, width]}])


@given(run_lists(), st.integers(1, 100))
def test_a_negative_run_after_any_others(runs: list[int], below: int) -> None:
    height, width = 1000, sum(runs) // 1000
    rle = coco_mask.frPyObjects({"size": [height, width], "counts": runs}, height, width)
    # How far below the run two before, as a number of the string.
    step = runs[-2] + below
    texts = [compressed(some) for some in ([0, step, 0], [0, step, 0, 0])]
    counts = rle["counts"] + texts[1].removeprefix(texts[0])
    with pytest.raises(lvdet.InputError, match="RLE has a negative run"):
        masks_from_segmentations([rle | {"counts": counts}])
