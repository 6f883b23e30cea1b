"""Random images with random objects, as a batch and as torchvision takes them."""

from __future__ import annotations

import torch
from torch import Tensor

from lvdet.training.data.batch import Batch, Objects


def random_batch(
    seed: int, *, images: int = 3, side: int = 128, classes: int = 7, most: int = 8, tile: int = 128
) -> tuple[Batch, list[Tensor], list[dict[str, Tensor]]]:
    """A batch of square and wider images; the images from 0 to 1; boxes, labels from 1, masks."""
    rng = torch.Generator().manual_seed(seed)

    def integers(low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high, shape, generator=rng)

    widths = [side + 64 * (number % 2) for number in range(images)]
    pixels = integers(0, 256, images, 3, side, max(widths)).to(torch.uint8)
    box = torch.zeros(images, most, 4)
    label = torch.full((images, most), -1)
    tiles = torch.zeros(images, most, tile, tile, dtype=torch.uint8)
    frame = torch.tensor([0.0, 0.0, 1.0, 1.0]).repeat(images, most, 1)
    targets = []
    for image, width in enumerate(widths):
        count = int(integers(1, most + 1, 1))
        low = torch.stack([integers(0, width - 40, count), integers(0, side - 40, count)], dim=1)
        high = low + integers(8, 100, count, 2)
        # Off the edges, where torchvision repeats the mask's last pixels.
        high = torch.minimum(high, torch.tensor([width - 1, side - 1]))
        masks = torch.zeros(count, side, width, dtype=torch.uint8)
        for row, (x1, y1, x2, y2) in enumerate(torch.cat([low, high], dim=1).tolist()):
            part = integers(0, 2, y2 - y1, x2 - x1).to(torch.uint8)
            masks[row, y1:y2, x1:x2] = part
            tiles[image, row, : y2 - y1, : x2 - x1] = part
            frame[image, row, :2] = torch.tensor([x1, y1])
        box[image, :count] = torch.cat([low, high], dim=1).float()
        label[image, :count] = integers(0, classes, count)
        targets.append(
            {"boxes": box[image, :count], "labels": label[image, :count] + 1, "masks": masks}
        )
    size = torch.tensor([[side, width] for width in widths])
    objects = Objects(box, label, tiles, frame)
    batch = Batch(pixels, size, torch.arange(images) + 100 * seed, objects)
    views = [pixels[i, :, :, :width].float() / 255 for i, width in enumerate(widths)]
    return batch, views, targets
