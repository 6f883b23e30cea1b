"""Box formats other than x, y, width, height in pixels."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError

Float = TypeVar("Float", bound=np.floating[Any])
#: Corner and size, two corners, centre and size; in pixels, and as fractions of the image.
BOX_FORMATS = ("xywh", "xyxy", "cxcywh", "xywhn", "xyxyn", "cxcywhn")


def require_box_format(name: str) -> None:
    """Raises for an unknown format."""
    if name not in BOX_FORMATS:
        raise InputError(f"box format is {name!r}, expected one of {', '.join(BOX_FORMATS)}")


def normalized(name: str) -> bool:
    """Whether boxes are fractions of the image, so that its size is needed."""
    return name.endswith("n")


def from_format(
    name: str, box: NDArray[Float], size: NDArray[np.float64] | None = None
) -> NDArray[Float]:
    """[N, 4] x, y, width, height in pixels, from boxes in a format, in their precision."""
    found = box.copy()
    if normalized(name):
        assert size is not None
        found *= np.tile(size, 2)
    if name.startswith("xyxy"):
        found[:, 2:] -= found[:, :2]
    elif name.startswith("cxcywh"):
        found[:, :2] -= found[:, 2:] / 2
    return found
