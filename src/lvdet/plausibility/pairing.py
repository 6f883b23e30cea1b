"""The objects found by a sample's detections, under a reading of the file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.plausibility.image_sample import Objects, Sample
from lvdet.tables.ground_truth import GroundTruth

_IOU = 0.5


@dataclass(frozen=True, eq=False)
class Pairing:
    """Every detection of a sample paired with every object of its image.

    row:    [P] detection of the sample; target: [P] place in `objects`
    objects: [G] rows of the annotations
    """

    row: NDArray[np.int64]
    target: NDArray[np.int64]
    objects: NDArray[np.int64]

    @staticmethod
    def of(sample: Sample, objects: Objects, images: NDArray[np.int64]) -> Pairing:
        """images: [S] the image whose objects are compared, for each sampled image."""
        counts = objects.counts[images]
        begins = np.append(0, np.cumsum(counts))
        rows = objects.rows[_ranges(objects.offsets[images], counts)]
        here = counts[sample.row_image]
        row = np.repeat(np.arange(len(sample.row_image)), here)
        return Pairing(row, _ranges(begins[sample.row_image], here), rows)

    def overlapping(self, gt: GroundTruth, box: NDArray[np.float64]) -> NDArray[np.bool_]:
        """[P] whether detection and object overlap by half; boxes: [R, 4] of the detections."""
        x, y, w, h = np.ascontiguousarray(box.T)  # column by column: short rows are slow
        left, top, wide, high = np.ascontiguousarray(gt.box[self.objects].T)
        row, target = self.row, self.target
        inner_w = np.minimum((x + w)[row], (left + wide)[target]) - np.maximum(x[row], left[target])
        inner_h = np.minimum((y + h)[row], (top + high)[target]) - np.maximum(y[row], top[target])
        inner = np.maximum(inner_w, 0) * np.maximum(inner_h, 0)
        outer = (w * h)[row] + (wide * high)[target] - inner
        near: NDArray[np.bool_] = inner >= _IOU * outer
        return near

    def found(self, pairs: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """[G] the objects that are in any of the pairs."""
        found = np.zeros(len(self.objects), dtype=bool)
        found[self.target[pairs]] = True
        return found


def _ranges(begins: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin, begin + 1, … of each."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(begins - ends + counts, counts)
