"""The masks of all annotations in a few arrays, which forked processes share."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.rasters import run_lengths


@dataclass(frozen=True)
class Shapes:
    """Masks of N annotations: polygons, compressed run lengths, or neither.

    coordinates: float32[C] x, y, x, y ... of all polygons, in pixels
    part_ends:   int64[P] where each polygon ends among the coordinates
    parts:       int64[N, 2] the first polygon of each annotation, and after its last
    text:        uint8[T] the compressed run lengths of all masks
    letters:     int64[N, 2] where each annotation's begin and end
    """

    coordinates: NDArray[np.float32]
    part_ends: NDArray[np.int64]
    parts: NDArray[np.int64]
    text: NDArray[np.uint8]
    letters: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, rows: NDArray[np.int64]) -> Shapes:
        """Those of some rows; what is large stays shared."""
        return Shapes(
            self.coordinates, self.part_ends, self.parts[rows], self.text, self.letters[rows]
        )

    @property
    def known(self) -> NDArray[np.bool_]:
        """bool[N] whether there is a mask."""
        some: NDArray[np.bool_] = (self.parts[:, 0] < self.parts[:, 1]) | (
            self.letters[:, 0] < self.letters[:, 1]
        )
        return some

    def polygons(self, row: int) -> list[NDArray[np.float32]]:
        """float32[n, 2] points of each polygon of an annotation; none of them: []."""
        first, last = self.parts[row]
        ends = self.part_ends[first:last].tolist()
        begin = int(self.part_ends[first - 1]) if first else 0
        starts = [begin, *ends[:-1]]
        return [
            self.coordinates[a:b].reshape(-1, 2) for a, b in zip(starts, ends, strict=bool(ends))
        ]

    def runs(self, row: int) -> NDArray[np.int64] | None:
        """The run lengths of an annotation that has them."""
        begin, end = self.letters[row]
        return run_lengths.decode(self.text[begin:end].tobytes()) if begin < end else None


class ShapesBuilder:
    """Takes in segmentations as they come in a file, one annotation after the other."""

    def __init__(self) -> None:
        self._coordinates = array("f")
        self._part_ends = array("q")
        self._parts = array("q")
        self._text = bytearray()
        self._letters = array("q")
        self._sizes = array("q")

    def add(self, segmentation: Any) -> str:
        """Adds the next one. Returns what is wrong with it, "" if nothing is."""
        first, begin = len(self._part_ends), len(self._text)
        problem = ""
        if isinstance(segmentation, list):
            problem = self._add_polygons(segmentation)
        elif isinstance(segmentation, dict):
            problem = self._add_runs(segmentation)
        elif segmentation is not None:
            problem = "segmentation is neither polygons nor run lengths"
        self._parts.extend((first, len(self._part_ends)))
        self._letters.extend((begin, len(self._text)))
        return problem

    def _add_polygons(self, polygons: list[Any]) -> str:
        for polygon in polygons:
            try:
                points = array("f", polygon)
            except (TypeError, OverflowError):
                return "segmentation has a polygon that is not a list of numbers"
            if len(points) % 2:
                return f"segmentation has a polygon of {len(points)} numbers, expected x, y, ..."
            if len(points) >= 6:  # fewer points have no inside
                self._coordinates.extend(points)
                self._part_ends.append(len(self._coordinates))
        return ""

    def _add_runs(self, segmentation: dict[str, Any]) -> str:
        size, counts = segmentation.get("size"), segmentation.get("counts")
        if not (isinstance(size, list) and len(size) == 2 and all(type(n) is int for n in size)):
            return "segmentation has no 'size' of [height, width]"
        if isinstance(counts, list):
            try:
                runs = np.array(counts, dtype=np.uint32)
                (counts,) = run_lengths.encode(runs, np.array([0, runs.size]))
            except (TypeError, ValueError, OverflowError):
                return "segmentation has 'counts' that are not numbers"
        if not isinstance(counts, str) or not counts.isascii():
            return "segmentation has no 'counts'"
        if not all(0 < side < 1 << 20 for side in size):
            return f"segmentation has the 'size' {size}"
        self._text += counts.encode()
        self._sizes.extend((len(self._parts) // 2, *size))
        return ""

    def sizes(self) -> NDArray[np.int64]:
        """[R, 3] annotation, height and width of all that have run lengths."""
        return np.frombuffer(self._sizes, dtype=np.int64).reshape(-1, 3)

    def build(self) -> Shapes:
        return Shapes(
            np.frombuffer(self._coordinates, dtype=np.float32),
            np.frombuffer(self._part_ends, dtype=np.int64),
            np.frombuffer(self._parts, dtype=np.int64).reshape(-1, 2),
            np.frombuffer(self._text, dtype=np.uint8),
            np.frombuffer(self._letters, dtype=np.int64).reshape(-1, 2),
        )
