"""Columns from annotations given as dicts, as in the reference tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.records import masks_from_segmentations
from lvdet.tables.masks import POLYGONS, RLE, Masks

Annotation: TypeAlias = dict[str, Any]
#: Masks, and the image of each.
PlacedMasks: TypeAlias = tuple[Masks, NDArray[np.int32]]


def column(annotations: Sequence[Annotation], name: str, source: str) -> NDArray[np.float64]:
    """[N] one field of each annotation."""
    return _floats([one[name] for one in annotations], name, source)


def boxes(annotations: Sequence[Annotation], source: str) -> NDArray[np.float64]:
    """[N, 4] x, y, width and height of each annotation."""
    found = _floats([one["bbox"] for one in annotations] or np.zeros((0, 4)), "bbox", source)
    if found.ndim != 2 or found.shape[1] != 4:
        raise InputError(f"{source}: bbox has shape {found.shape}, expected (N, 4) [x, y, w, h]")
    return found


def masks(annotations: Sequence[Annotation], source: str) -> Masks:
    """The mask of each annotation: polygons or run lengths, compressed or not, as bytes or text."""
    return masks_from_segmentations([one["segmentation"] for one in annotations], source)


def image_sizes(
    images: Sequence[Mapping[str, Any]], placed: Sequence[PlacedMasks]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """([I], [I]) height and width of images: what they say, or else what their masks say. Refuses
    masks of another size than the others of their image."""
    stated = np.array([_size(image) for image in images], dtype=np.int32).reshape(-1, 2)
    size, drawn = stated.copy(), np.zeros(len(images), dtype=bool)
    for found, image in placed:
        drawn[image[found.kind == POLYGONS]] = True
    for found, image in placed:
        encoded = np.flatnonzero(found.kind == RLE)
        first, at = np.unique(image[encoded], return_index=True)
        undecided = ~drawn[first]
        rows = encoded[at[undecided]]
        size[first[undecided]] = np.stack([found.height[rows], found.width[rows]], axis=1)
        drawn[first] = True
    for found, image in placed:
        own = np.stack([found.height, found.width], axis=1)
        wrong = (found.kind == RLE) & (own != size[image]).any(axis=1)
        wrong |= (found.kind == POLYGONS) & (size[image] < 0).any(axis=1)
        for row in np.flatnonzero(wrong)[:1]:
            name = images[image[row]].get("id")
            if found.kind[row] == POLYGONS:
                raise InputError(f"image {name} has polygons, but no height and width")
            expected = " x ".join(map(str, size[image[row]]))
            came = " x ".join(map(str, own[row]))
            raise InputError(f"image {name}: a mask is {came}, expected {expected}")
    return np.ascontiguousarray(size[:, 0]), np.ascontiguousarray(size[:, 1])


def _size(image: Mapping[str, Any]) -> tuple[int, int]:
    height, width = image.get("height"), image.get("width")
    return (-1, -1) if height is None or width is None else (int(height), int(width))


def _floats(values: Iterable[Any], name: str, source: str) -> NDArray[np.float64]:
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: {name} is not a column of numbers: {error}") from None
    if np.isnan(found).any():
        raise InputError(f"{source}: {name} is NaN, expected a number")
    return found
