"""Detections that are not in one place, and are read by others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

from lvdet.files.known_images import KnownImages
from lvdet.files.progress import Progress
from lvdet.files.remote_path import InputPath
from lvdet.tables.detections import Detections


class TableSource(ABC):
    """What `convert` takes in place of files."""

    paths: Sequence[InputPath]

    @abstractmethod
    def tables(
        self,
        *,
        masks: bool,
        dets_per_class: int | None,
        dets_per_image: int | None,
        images: KnownImages,
        change: Callable[[Detections], Detections],
        progress: Progress | None,
    ) -> Iterator[tuple[Detections, int]]:
        """The tables that `read_detections` would read as one, changed; and for each, how many rows
        were read for it."""
