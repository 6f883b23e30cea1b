"""What annotations say about the images in a results file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.files.annotation_files import read_ground_truth
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import rows_of

#: The accepted types of annotations if only their images are needed.
ImageSource: TypeAlias = GroundTruth | str | os.PathLike[str] | None


@dataclass(frozen=True, eq=False)
class KnownImages:
    """Image ids by file name, and image sizes; empty without annotations."""

    gt: GroundTruth | None = None

    @staticmethod
    def of(images: ImageSource) -> KnownImages:
        """Reads the annotations if a path is given."""
        if images is None or isinstance(images, GroundTruth):
            return KnownImages(images)
        return KnownImages(read_ground_truth(images, masks=False))

    @cached_property
    def names(self) -> _native.ImageNames | None:
        """Ids by file name, for native readers; None if nothing is known."""
        if self.gt is None:
            return None
        images = self.gt.images
        try:
            return _native.ImageNames(images.ids, images.file_names)
        except TypeError:  # a name that has no UTF-8 form
            return _native.ImageNames(images.ids, _encodable(images.file_names))

    def find(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
        """The ids of file names, with (index, problem) for each unknown name."""
        names = self.names or _native.ImageNames()
        try:
            return names.find(texts)
        except TypeError:
            return names.find(_encodable(texts))

    def sizes(self, ids: NDArray[np.int64], source: str) -> NDArray[np.float64]:
        """[N, 2] width and height of the images."""
        if self.gt is None:
            raise InputError(
                f"{source}: boxes are fractions of the image size: pass the annotations for "
                "the sizes (images=GT, --images GT)"
            )
        rows = rows_of(self.gt.images.ids, ids)
        unknown = np.flatnonzero(rows < 0)
        if len(unknown):
            raise InputError(f"{source}: image_id {ids[unknown[0]]} is not in {self.gt.source}")
        images = self.gt.images
        return np.stack([images.width[rows], images.height[rows]], axis=1).astype(np.float64)


#: Nothing is known.
NO_IMAGES = KnownImages()


def _encodable(texts: Sequence[str]) -> list[str]:
    return [text.encode("utf-8", "replace").decode() for text in texts]
