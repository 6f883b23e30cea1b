"""Masks of many objects in one byte column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.tables.columns import require_columns
from lvdet.tables.description import counted, describe_line

#: Values of `Masks.kind`.
NONE, RLE, POLYGONS = 0, 1, 2

#: Bytes of a polygon's point.
_POINT = 16
#: Maximum number of pixels of an image.
LARGEST_SIDE = _native.LARGEST_SIDE
#: Maximum size of an encoded mask in bytes.
LARGEST_MASK = _native.LARGEST_MASK


@dataclass(frozen=True, eq=False, repr=False)
class Masks:
    """N encoded masks, decoded to runs only by the kernels that need them.

    A row is COCO's compressed run-length string (`kind` RLE) or polygon parts (`kind`
    POLYGONS: a uint32 count of parts, a uint32 count of numbers for each part, then the
    float64 x, y numbers). Most detections are never compared with any ground truth, so
    keeping them encoded saves both the memory and the work.

    data:    [bytes] uint8, the concatenated rows
    offsets: [N + 1] int64, where each row begins in `data`
    kind:    [N] uint8
    height, width: [N] int32, pixels; 0 if unknown (polygons of a detection, which have the image's
        size)
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    kind: NDArray[np.uint8]
    height: NDArray[np.int32]
    width: NDArray[np.int32]

    def __repr__(self) -> str:
        return describe_line(self, counted(len(self.kind), "mask"), f"{len(self.data):,} bytes")

    def __post_init__(self) -> None:
        rows = len(self.kind)
        require_columns(
            self,
            "masks",
            {
                "data": (np.uint8, (len(self.data),)),
                "offsets": (np.int64, (rows + 1,)),
                "kind": (np.uint8, (rows,)),
                "height": (np.int32, (rows,)),
                "width": (np.int32, (rows,)),
            },
        )
        begin, end = self.offsets[0], self.offsets[-1]
        if begin != 0 or end > len(self.data) or (self.offsets[1:] < self.offsets[:-1]).any():
            raise InputError(
                f"masks: offsets go from {begin} to {end}, expected to increase from 0 to at most "
                f"{len(self.data)}"
            )

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, rows: Any) -> Masks:
        """Rows by index array, boolean mask or slice, as a new table."""
        index = np.arange(len(self))[rows]
        data, offsets = _native.take_masks(self.data, self.offsets, np.ascontiguousarray(index))
        return Masks(data, offsets, self.kind[index], self.height[index], self.width[index])

    @property
    def columns(
        self,
    ) -> tuple[
        NDArray[np.uint8],
        NDArray[np.int64],
        NDArray[np.uint8],
        NDArray[np.int32],
        NDArray[np.int32],
    ]:
        """The five arrays, as the native kernels take them."""
        return self.data, self.offsets, self.kind, self.height, self.width

    def row(self, index: int) -> bytes:
        """The encoded bytes of one row."""
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()

    @staticmethod
    def concatenate(parts: list[Masks]) -> Masks:
        """One table of all parts' rows, in order."""
        starts = np.cumsum([0] + [len(part.data) for part in parts])
        return Masks(
            np.concatenate([part.data for part in parts]),
            np.concatenate(
                [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
                + [starts[-1:]]
            ).astype(np.int64),
            np.concatenate([part.kind for part in parts]),
            np.concatenate([part.height for part in parts]),
            np.concatenate([part.width for part in parts]),
        )


def require_crossings(
    masks: Masks, widths: NDArray[np.int32], image: NDArray[np.int32], source: str
) -> None:
    """Raises if polygons would take far more time and memory as masks than their bytes do.

    widths: [I] of the images; image: [N] row of each mask's image
    """
    most = max(_native.CROSSINGS, _native.CROSSINGS_PER_BYTE * len(masks.data))
    if len(masks.data) // _POINT * int(widths.max(initial=0)) <= most:
        return
    crossed = _native.mask_crossings(masks.columns, widths[image])
    if crossed > most:
        raise InputError(
            f"{source}: the edges of all polygons cross {crossed:,} columns of their images, "
            f"expected at most {most:,}"
        )


def no_masks(rows: int) -> Masks:
    """A table of rows without masks."""
    return Masks(
        np.zeros(0, dtype=np.uint8),
        np.zeros(rows + 1, dtype=np.int64),
        np.full(rows, NONE, dtype=np.uint8),
        np.zeros(rows, dtype=np.int32),
        np.zeros(rows, dtype=np.int32),
    )
