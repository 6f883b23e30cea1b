"""Masks as runs of pixels: pycocotools.mask's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.files.bitmaps import bitmaps_from_masks, masks_from_bitmaps
from lvdet.files.records import masks_from_segmentations
from lvdet.tables.detections import masks_to_boxes
from lvdet.tables.masks import RLE, Masks
from lvdet.threads import thread_count

__all__ = ["area", "decode", "encode", "frPyObjects", "iou", "merge", "toBbox"]

Encoded = dict[str, Any]


def encode(bimask: ArrayLike) -> Any:
    """[H, W] pixels as {size, counts}, or [H, W, N] as a list; of any whole numbers or booleans,
    in any order of memory."""
    pixels = np.asarray(bimask)
    if pixels.ndim == 2:
        return _records(masks_from_bitmaps(pixels[None]))[0]
    if pixels.ndim != 3:
        raise InputError(f"masks have shape {pixels.shape}, expected (height, width[, N])")
    return _records(masks_from_bitmaps(pixels.transpose(2, 0, 1)))


def decode(rleObjs: Any) -> NDArray[np.uint8]:
    """[H, W, N] pixels of a list of masks, or [H, W] of one."""
    if not isinstance(rleObjs, list):
        return np.asfortranarray(bitmaps_from_masks(_masks([rleObjs]))[0], dtype=np.uint8)
    _one_size(masks := _masks(rleObjs))
    if not rleObjs:
        return np.zeros((0, 0, 0), dtype=np.uint8)
    return np.asfortranarray(np.stack(bitmaps_from_masks(masks), axis=2), dtype=np.uint8)


def area(rleObjs: Any) -> Any:
    """The area in pixels of each mask in a list, or of a single mask."""
    if not isinstance(rleObjs, list):
        return area([rleObjs])[0]
    runs, offsets = _runs(_masks(rleObjs))
    row = np.repeat(np.arange(len(rleObjs)), np.diff(offsets))
    inside = (np.arange(len(runs)) - offsets[row]) % 2
    return np.bincount(row, weights=runs * inside, minlength=len(rleObjs)).astype(np.uint32)


def toBbox(rleObjs: Any) -> Any:
    """[N, 4] x, y, width and height around each mask of a list, or [4] of one."""
    if not isinstance(rleObjs, list):
        return toBbox([rleObjs])[0]
    return masks_to_boxes(_masks(rleObjs))


def merge(rleObjs: list[Any], intersect: Any = 0) -> Encoded:
    """The union of masks, or their intersection."""
    masks = _masks(rleObjs)
    _one_size(masks)
    if not rleObjs:
        return {"size": [0, 0], "counts": b""}
    runs, offsets = _runs(masks)
    # Where runs end, masks begin and end in turn: how many cover the pixels from there on.
    row = np.repeat(np.arange(len(rleObjs)), np.diff(offsets))
    ends = np.cumsum(runs, dtype=np.int64)
    before = np.append(0, ends)[offsets[:-1]]
    at = ends - before[row]
    step = np.where((np.arange(len(runs)) - offsets[row]) % 2 == 0, 1, -1)
    order = np.argsort(at, kind="stable")
    places, last = np.unique(at[order][::-1], return_index=True)
    cover = np.cumsum(step[order])[len(at) - 1 - last]
    inside = cover >= (len(rleObjs) if intersect else 1)
    pixels = int(masks.height[0]) * int(masks.width[0])
    changes = places[(inside != np.append(False, inside[:-1])) & (places < pixels)]
    merged = np.diff(changes, prepend=0, append=pixels).astype(np.uint32)
    data, _ = _native.rle_encode(merged, np.array([0, len(merged)], dtype=np.int64))
    size = [int(masks.height[0]), int(masks.width[0])]
    return {"size": size, "counts": data.tobytes()}


def iou(dt: Any, gt: Any, pyiscrowd: Sequence[Any]) -> Any:
    """[D, G] overlaps of boxes or of masks: intersection over union, or over the detection's area
    where the object is a crowd."""
    if len(pyiscrowd) != len(gt):
        raise InputError(f"{len(pyiscrowd)} crowd flags for {len(gt)} objects")
    if len(dt) == 0 or len(gt) == 0:
        return []
    crowd = np.array([bool(one) for one in pyiscrowd])
    encoded = [isinstance(side, list) and isinstance(side[0], dict) for side in (dt, gt)]
    if encoded[0] != encoded[1]:
        raise InputError(
            "overlaps can be computed between boxes or between masks, not between a box and a mask"
        )
    if encoded[0]:
        found, truth = _masks(dt).columns, _masks(gt).columns
        return _native.mask_overlaps(found, truth, crowd.view(np.uint8), thread_count())
    return _box_overlaps(_boxes(dt), _boxes(gt), crowd)


def frPyObjects(pyobj: Any, h: int, w: int) -> Any:
    """Polygons, boxes or run lengths as encoded masks of an image: a list of masks, or one mask for
    a single run length."""
    if isinstance(pyobj, dict):
        return _records(_masks([pyobj]))[0]
    objects = list(pyobj)
    if not objects:
        raise InputError("there are no polygons, boxes or run lengths to encode")
    if isinstance(objects[0], dict):
        return _records(_masks(objects))
    if len(objects[0]) == 4:
        objects = [[x, y, x, y + b, x + a, y + b, x + a, y] for x, y, a, b in objects]
    masks = masks_from_segmentations([[list(one)] for one in objects], "masks")
    masks.height[:], masks.width[:] = h, w
    return _records(masks)


def _masks(encoded: Sequence[Any]) -> Masks:
    masks = masks_from_segmentations(encoded, "masks")
    if (masks.kind != RLE).any():
        raise InputError("masks are not encoded: frPyObjects encodes polygons and boxes")
    return masks


def _runs(masks: Masks) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    runs, offsets = _native.mask_runs(masks.columns, masks.height, masks.width, False)
    return runs, offsets


def _records(masks: Masks) -> list[Encoded]:
    """{size, counts} of each."""
    data, offsets = _native.rle_encode(*_runs(masks))
    sizes = zip(masks.height.tolist(), masks.width.tolist(), strict=True)
    return [
        {"size": list(size), "counts": data[offsets[row] : offsets[row + 1]].tobytes()}
        for row, size in enumerate(sizes)
    ]


def _one_size(masks: Masks) -> None:
    sizes = set(zip(masks.height.tolist(), masks.width.tolist(), strict=True))
    if len(sizes) > 1:
        raise InputError(f"masks have {len(sizes)} sizes, expected one")


def _boxes(values: Any) -> NDArray[np.float64]:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != 4:
        raise InputError(f"boxes have shape {found.shape}, expected (N, 4) [x, y, w, h]")
    return found


def _box_overlaps(
    dt: NDArray[np.float64], gt: NDArray[np.float64], crowd: NDArray[np.bool_]
) -> NDArray[np.float64]:
    x, y, w, h = dt.T[:, :, None]
    left, top, width, height = gt.T[:, None]
    across = np.minimum(w + x, width + left) - np.maximum(x, left)
    down = np.minimum(h + y, height + top) - np.maximum(y, top)
    inner = across * down
    outer = np.where(crowd, w * h, w * h + width * height - inner)
    apart = (across <= 0) | (down <= 0)
    return np.where(apart, 0.0, inner / np.where(apart, 1.0, outer))
