"""Random images as torchmetrics takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

SIZE = 64


def random_images(
    seed: int, *, masks: bool = False, fewest: int = 0
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Predictions and targets of twelve images on whole pixels, where no arithmetic rounds; fewest
    objects in each."""
    rng = np.random.default_rng(seed)
    predictions, targets = [], []
    for image in range(12):
        known, found = int(rng.integers(fewest, 6)), int(rng.integers(0, 25))
        box = boxes(rng, known)
        near = np.clip(box[rng.integers(0, known, found)], 0, None) if known else boxes(rng, found)
        near = np.clip(near + rng.integers(-4, 5, near.shape), 0, SIZE)
        near[:, 2:] = np.maximum(near[:, 2:], near[:, :2] + 1)
        predictions.append(
            {
                "boxes": torch.tensor(near, dtype=torch.float32),
                "scores": torch.tensor(np.round(rng.random(found), 2), dtype=torch.float32),
                "labels": torch.tensor(rng.integers(0, 5, found)),
            }
        )
        targets.append(
            {
                "boxes": torch.tensor(box, dtype=torch.float32),
                "labels": torch.tensor(rng.integers(0, 4, known)),
                "iscrowd": torch.tensor(rng.random(known) < 0.2).int(),
                "image_id": torch.tensor([image]),
            }
        )
        if masks:
            for item in (predictions[-1], targets[-1]):
                item["masks"] = filled(item["boxes"])
    return predictions, targets


def boxes(rng: np.random.Generator, count: int) -> Any:
    corner = rng.integers(0, SIZE // 2, (count, 2))
    return np.concatenate([corner, corner + rng.integers(2, SIZE // 2, (count, 2))], axis=1)


def filled(box: torch.Tensor) -> torch.Tensor:
    """[n, SIZE, SIZE] ellipses in boxes."""
    rows, columns = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    x, y, right, bottom = (side[:, None, None] for side in box.T)
    across = (columns + 0.5 - (x + right) / 2) / (right - x)
    down = (rows + 0.5 - (y + bottom) / 2) / (bottom - y)
    return across**2 + down**2 < 0.25
