"""Loads images in batches, tolerating damaged files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lvdet.errors import InputError
from lvdet.inference.batches import Image
from lvdet.training.configuration.config import Input
from lvdet.training.data.image_files import read_picture
from lvdet.training.data.prediction import PredictionBatch, prediction_batches


class DamagedImageError(InputError):
    """A file can be read, but is not a valid image."""


def load(
    images: Sequence[Image],
    size: Input,
    batch: int,
    workers: int,
    skip: Callable[[list[Image]], None] | None = None,
) -> Iterator[PredictionBatch]:
    """The images in the given order, `batch` at a time.

    skip: receives the damaged images of a batch before the others are returned; without it, the
          first damaged image raises `DamagedImageError`

    The batches of the others stay as they are, so that they do not depend on the damaged ones.
    A file that is not there, or that cannot be read at all, is an error in any case: a whole disk
    may be gone.
    """
    begin = 0
    while begin < len(images):
        try:
            for given in prediction_batches(images[begin:], size, batch, workers):
                yield given
                begin += batch
            return
        except InputError as error:
            together = images[begin : begin + batch]
            damaged = [image for image in together if is_damaged(image[1])]
            if not damaged:
                raise
            if skip is None:
                raise DamagedImageError(str(error)) from None
        skip(damaged)
        sound = [image for image in together if image not in damaged]
        yield from prediction_batches(sound, size, batch, 0)
        begin += batch


def is_damaged(path: Path) -> bool:
    """Whether a file can be read but is not a valid image."""
    try:
        read_picture(path)
    except InputError:
        try:
            path.read_bytes()
        except OSError:
            return False
        return True
    return False
