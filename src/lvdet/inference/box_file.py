"""The outcome of the first pass, image by image."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

_BEGIN = b'{"image_id": '


@dataclass(frozen=True)
class Rows:
    """Detections of an image.

    box:   [n, 4] float64 x, y, width, height in pixels of the original image
    score: [n] float64
    label: [n] int64 class rows from 0
    """

    box: NDArray[np.float64]
    score: NDArray[np.float64]
    label: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.score)

    @property
    def corners(self) -> NDArray[np.float64]:
        """[n, 4] x1, y1, x2, y2."""
        return np.concatenate([self.box[:, :2], self.box[:, :2] + self.box[:, 2:]], axis=1)


#: No detections.
NONE = Rows(np.zeros((0, 4)), np.zeros(0), np.zeros(0, dtype=np.int64))


class BoxFile:
    """Lines of detections that a writer has written, those of an image beside each other.

    Only where those of each image begin is kept in memory.
    """

    def __init__(self, path: Path, category_ids: Sequence[int]) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        self._row = {category_id: row for row, category_id in enumerate(category_ids)}
        self._places: dict[int, tuple[int, int]] = {}
        begin = 0
        with open(path, "rb") as file:
            for image_id, lines in groupby(file, _image_id):
                size = sum(map(len, lines))
                self._places[image_id] = (begin, size)
                begin += size

    def __contains__(self, image_id: int) -> bool:
        """Whether the image has any detections."""
        return image_id in self._places

    def __getitem__(self, image_id: int) -> Rows:
        """The detections of an image, in their order; none of one that is not there."""
        begin, size = self._places.get(image_id, (0, 0))
        if self._file is None:
            self._file = open(self._path, "rb")  # noqa: SIM115
        self._file.seek(begin)
        text = self._file.read(size).rstrip(b"\n").replace(b"\n", b",")
        records: list[dict[str, Any]] = json.loads(b"[" + text + b"]")
        box = np.array([record["bbox"] for record in records], dtype=np.float64).reshape(-1, 4)
        return Rows(
            box,
            np.array([record["score"] for record in records], dtype=np.float64),
            np.array([self._row[record["category_id"]] for record in records], dtype=np.int64),
        )

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()


def _image_id(line: bytes) -> int:
    """What a writer writes first."""
    return int(line[len(_BEGIN) : line.index(b",")])
