"""What must be unchanged to resume a prediction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict

import torch
from torch import nn

from lvdet.inference.batches import Image
from lvdet.inference.settings import Settings
from lvdet.training.records.checkpoint import LoadedModel

#: Maximum number of files whose content is hashed.
LOOKED_AT = 64


def identity(
    model: LoadedModel, images: Sequence[Image], settings: Settings, masks: bool, processes: int
) -> dict[str, object]:
    """Everything that affects the result, by name; weights and images as checksums."""
    config = model.config
    size = asdict(config.input)
    found: dict[str, object] = {
        "version": 4,
        "dets_per_class": settings.dets_per_class,
        "dets_per_image": settings.dets_per_image,
        "score": settings.score,
        "nms": list(settings.nms),
        "masks": masks,
        "precision": settings.precision,
        "processes": processes,
        "batch": settings.batch if processes > 1 else None,  # which images each process has
        "step": model.step,
        "weights": checksum(model.detector),
        "images": checksum_of_images(images),
        "size": {name: size[name] for name in ("by", "sizes", "largest", "test_by", "test_size")},
    }
    parts = {
        "model": asdict(config.model) | {"norm": config.model.chosen_norm},
        "classifier": asdict(config.classifier),
        "recipe": asdict(model.detector.recipe),
    }
    for part, values in parts.items():
        found |= {f"{part}.{name}": value for name, value in values.items()}
    del found["model.weights"]  # what training began with
    return found


def checksum(detector: nn.Module) -> str:
    """A checksum that differs for different weights."""
    found = hashlib.sha256()
    for name, tensor in sorted(detector.state_dict().items()):
        content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        found.update(content.numpy())
    return found.hexdigest()[:16]


def checksum_of_images(images: Sequence[Image]) -> str:
    """A checksum of ids, file names, sizes in bytes, and the content of up to 64 files across the
    list.

    Not of folders or times: a job that is started again often has the same images copied to
    another place. Other images under the same names, such as smaller or altered copies, differ
    in size or content.
    """
    found = hashlib.sha256()
    step = -(-len(images) // LOOKED_AT) or 1
    for number, (image_id, path) in enumerate(images):
        try:
            found.update(f"{image_id} {path.name} {path.stat().st_size}\n".encode())
            if number % step == 0:
                found.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError:  # reported when its turn comes
            found.update(f"{image_id} {path.name}\n".encode())
    return found.hexdigest()[:16]
