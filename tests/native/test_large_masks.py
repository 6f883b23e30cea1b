"""Masks of very large images, and polygons that reach far beyond theirs."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pycocotools.mask as coco_mask
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from lvdet import _native
from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.files.records import from_records, masks_from_segmentations


def rectangle(width: int, height: int) -> list[list[int]]:
    return [[0, 0, width, 0, width, height, 0, height]]


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("side", [60_000, 65_540, 70_000, 100_000, 300_000])
def test_overlap_of_masks_of_any_number_of_pixels(side: int, parts: int, tmp_path: Path) -> None:
    """Three fifths of the image, at an IoU of 0.6: correct at three of ten thresholds."""
    annotations = {
        "images": [{"id": 1, "height": side, "width": side}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [
            {
                "id": 1,
                "image_id": 1,
                "category_id": 1,
                "bbox": [0, 0, side, side],
                "area": 100,
                "iscrowd": 0,
                "segmentation": rectangle(side, side) * parts,
            }
        ],
    }
    found = {"image_id": 1, "category_id": 1, "score": 0.5}
    three_fifths = rectangle(side * 3 // 5, side) * parts
    dt = from_records([{**found, "segmentation": three_fifths}])
    (tmp_path / "gt.json").write_text(json.dumps(annotations))
    result = lvdet.evaluate(tmp_path / "gt.json", dt, iou="segm", protocols=["old"])
    assert abs(result["old"].AP - 0.3) < 1e-12


def test_bitmaps_with_more_pixels_than_a_run_can_count() -> None:
    pixels = np.broadcast_to(np.False_, (1, 70_000, 70_000))
    with pytest.raises(lvdet.InputError, match="70000 x 70000 pixels, not a valid image size"):
        masks_from_bitmaps(pixels)


coordinates = st.floats(-400, 400) | st.integers(-400, 400)
polygons = st.lists(st.tuples(coordinates, coordinates), min_size=3, max_size=9)


@given(polygons, st.integers(1, 40), st.integers(1, 40))
def test_polygons_beyond_the_image(
    points: list[tuple[float, float]], height: int, width: int
) -> None:
    polygon = [float(value) for point in points for value in point]
    assert encoded(polygon, height, width) == pycocotools_counts(polygon, height, width)


def test_polygons_far_beyond_the_image() -> None:
    rng = random.Random(0)
    for _ in range(100):
        far = 10 ** rng.uniform(2, 5)
        polygon = [rng.uniform(-far, far) for _ in range(2 * rng.randint(3, 5))]
        polygon[:2] = rng.uniform(0, 90), rng.uniform(0, 60)
        assert encoded(polygon, 60, 90) == pycocotools_counts(polygon, 60, 90)


#: Draws a polygon under a limit of memory. Its edges to and fro across the image cancel each other
#: out, all but one.
LIMITED = """
import resource
from lvdet import _native
from lvdet.files.records import masks_from_segmentations
import numpy as np
used = 1024 * int(open("/proc/self/status").read().split("VmSize:")[1].split()[0])
resource.setrlimit(resource.RLIMIT_AS, (used + 2**25,) * 2)
masks = masks_from_segmentations([[[1e6, 5, -1e6, 0] * 5_000 + [300, 200]]])
counts, _ = _native.mask_runs(masks.columns, np.array([480], "i4"), np.array([640], "i4"), False)
print(*counts)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_edges_outside_the_image_take_no_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True
    )
    once = [1e6, 5, -1e6, 0, 300, 200]
    assert [int(run) for run in done.stdout.split()] == runs(once, 480, 640)
    assert len(runs(once, 480, 640)) > 100


def runs(polygon: list[float], height: int, width: int) -> list[int]:
    masks = masks_from_segmentations([[polygon]])
    sizes = np.array([height], np.int32), np.array([width], np.int32)
    counts, _ = _native.mask_runs(masks.columns, *sizes, False)
    return counts.tolist()


def encoded(polygon: list[float], height: int, width: int) -> bytes:
    counts = np.array(runs(polygon, height, width), dtype=np.uint32)
    return _native.rle_encode(counts, np.array([0, len(counts)]))[0].tobytes()


def pycocotools_counts(polygon: list[float], height: int, width: int) -> bytes:
    return coco_mask.frPyObjects([polygon], height, width)[0]["counts"]
