"""Which detections are right: the outcome of matching, for every budget at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.description import counted, describe_line


@dataclass(frozen=True, eq=False, repr=False)
class Matches:
    """The detections that count, matched without any limit.

    Rows are ordered by class, in a class by falling score; equal scores by image, in an image
    by their order there. A match depends only on detections ranked above in the same image and
    class, so a budget, which removes the end of that ranking, is a mask over these rows.

    detection: [K] int32, row of `Detections`
    position:  [K] int32, place of the row when ordered by image, class and rank: the order
               among equal scores where classes are ranked together
    category_offsets: [C + 1] int64, where each class's rows begin
    outcomes:  [K, A, 2, B] uint8, bit t % 8 of byte t // 8 for IoU threshold t: first,
               matched with a ground truth; second, not to be counted. Right is matched and not
               ignored, wrong is neither.
    truth:     [C, A] int64, ground truth to be found
    thresholds: [T] float64, IoU thresholds
    areas:     names of the A area ranges
    iou:       "bbox", "segm" or "boundary"
    partner:   [K, T] int32, row of `GroundTruth` that a row is matched with over all areas, -1
               where with none; None where it was not asked for
    """

    detection: NDArray[np.int32]
    position: NDArray[np.int32]
    category_offsets: NDArray[np.int64]
    outcomes: NDArray[np.uint8]
    truth: NDArray[np.int64]
    thresholds: NDArray[np.float64]
    areas: tuple[str, ...]
    iou: str
    partner: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return describe_line(
            self,
            counted(len(self), "detection"),
            counted(len(self.truth), "class", "classes"),
            f"{self.iou} at {counted(len(self.thresholds), 'threshold')}",
        )

    def __len__(self) -> int:
        return len(self.detection)

    def kept(self, keep: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """[K] the rows whose detections a mask over all detections keeps; None for all."""
        return None if keep is None else keep[self.detection]

    def flags(self, threshold: int, area: int = 0) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """[K] whether each row is matched, and ignored, at a threshold and area by index."""
        byte, bit = self.outcomes[:, area, :, threshold // 8], np.uint8(1 << threshold % 8)
        return (byte[:, 0] & bit).astype(bool), (byte[:, 1] & bit).astype(bool)

    @property
    def category(self) -> NDArray[np.int32]:
        """[K] class of each row."""
        counts = np.diff(self.category_offsets)
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)
