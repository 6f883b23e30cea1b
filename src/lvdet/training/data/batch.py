"""The images and objects of one step, in tensors of fixed size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

#: Side length of a mask tile in pixels.
TILE = 112


@dataclass(frozen=True)
class Objects:
    """The objects of B images, each with room for G objects.

    box:   [B, G, 4] float32 x1, y1, x2, y2 in pixels of the resized image
    label: [B, G] int64 class rows from 0; -1 if there is no object
    tile:  [B, G, T, T] uint8, the part of an object's mask inside its frame: 1 inside the object
    frame: [B, G, 4] float32 x0, y0, sx, sy: the point (x, y) of the image is at ((x - x0) * sx, (y
           - y0) * sy) of the tile; outside the tile there is no object. 0 if there is no object,
           or its mask has no part inside the image
    """

    box: Tensor
    label: Tensor
    tile: Tensor
    frame: Tensor


@dataclass(frozen=True)
class Batch:
    """B resized images, each in the upper left corner of H x W pixels.

    pixels: [B, 3, H, W] uint8 RGB; H and W are multiples of 32
    size:   [B, 2] int64 height and width of each resized image
    seed:   [B] int64, what everything that is random about the image depends on
    objects: None if nothing is known of the images
    """

    pixels: Tensor
    size: Tensor
    seed: Tensor
    objects: Objects | None = None

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors."""
        objects = self.objects
        of_objects = [getattr(objects, f.name) for f in fields(Objects)] if objects else []
        return [self.pixels, self.size, self.seed, *of_objects]

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The batch with each tensor changed."""
        pixels, size, seed, *of_objects = map(change, self.tensors)
        return Batch(pixels, size, seed, Objects(*of_objects) if self.objects else None)

    def parts(self, number: int) -> list[Batch]:
        """Splits it into batches of equal size, with the images in order."""
        size = len(self.seed) // number
        rows = [slice(size * part, size * (part + 1)) for part in range(number)]
        return [self.each(lambda tensor, some=some: tensor[some]) for some in rows]  # type: ignore[misc]

    def to(self, device: torch.device, *, channels_last: bool = False) -> Batch:
        """The same batch on a device; pinned memory is copied asynchronously.

        channels_last: the colours of a pixel beside each other, as convolutions may want them
        """
        moved = self.each(lambda tensor: tensor.to(device, non_blocking=True))
        if not channels_last:
            return moved
        return replace(moved, pixels=moved.pixels.contiguous(memory_format=torch.channels_last))

    def pin_memory(self) -> Batch:
        """The same batch in pinned memory."""
        return self.each(Tensor.pin_memory)
