"""The best K detections of each class over a whole set of images."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

import torch
from torch import nn

from lvdet.errors import InputError
from lvdet.predict.batches import Image, Portions
from lvdet.predict.box_pass import find_boxes
from lvdet.predict.mask_pass import find_masks
from lvdet.predict.settings import Settings, Summary, Written
from lvdet.predict.sinks import class_counts, require_format
from lvdet.predict.work_folder import WorkFolder
from lvdet.read.files import Progress
from lvdet.train.checkpoint import LoadedModel

#: Called with what is being done; what it gives is told of the progress.
Watch: TypeAlias = Callable[[str], AbstractContextManager[Progress | None]]


def predict(
    model: LoadedModel,
    images: Sequence[Image],
    out: Path,
    settings: Settings | None = None,
    watch: Watch | None = None,
) -> Summary:
    """Writes the best detections of each class over all images, in COCO's format.

    images: ids, all different, and files
    out:    a file (.json, .jsonl, or what else `TopKWriter` writes); of several thresholds of NMS
            each has its own, see `Settings.targets`

    The first pass looks for boxes and keeps the best of each class, the second makes masks of
    those. What is finished is kept in OUT.work until the end: a process that was killed goes on
    when it is called again. Of equal scores the earlier image counts.
    """
    settings = settings or Settings()
    watch = watch or (lambda _: nullcontext())
    begun = time.monotonic()
    require_format(out)
    _require_different(images)
    masks = settings.masks and model.config.model.masks
    targets = settings.targets(out)
    category_ids = model.category_ids.tolist()
    portions = Portions(settings.batch)
    with WorkFolder(
        out, targets, _identity(model, images, settings, masks), overwrite=settings.overwrite
    ) as work:
        outcomes = [work.outcome(number) for number in range(len(targets))]
        boxes = [work.boxes(number) for number in range(len(targets))] if masks else outcomes
        if not work.complete:
            was_training = model.detector.training
            model.detector.eval()
            size, device = model.config.input, device_of(model.detector)
            try:
                with watch("boxes (1 of 2)" if masks else "boxes") as progress:
                    find_boxes(
                        model.detector,
                        images,
                        boxes,
                        size=size,
                        category_ids=category_ids,
                        settings=settings,
                        portions=portions,
                        device=device,
                        progress=progress,
                    )
                if masks:
                    with watch("masks (2 of 2)") as progress:
                        find_masks(
                            model.detector,
                            images,
                            boxes,
                            outcomes,
                            size=size,
                            category_ids=category_ids,
                            settings=settings,
                            portions=portions,
                            device=device,
                            progress=progress,
                        )
            finally:
                model.detector.train(was_training)
        work.finish()
    return Summary(
        images=len(images),
        masks=masks,
        batch=portions.limit,
        seconds=round(time.monotonic() - begun, 3),
        files=[
            _written(path, nms, settings.per_class)
            for path, nms in zip(targets, settings.nms, strict=True)
        ],
        notes=portions.notes,
    )


def device_of(detector: nn.Module) -> torch.device:
    """Where a detector is."""
    return next((tensor.device for tensor in detector.parameters()), torch.device("cpu"))


def checksum(detector: nn.Module) -> str:
    """The same for the same weights, and for no others."""
    found = hashlib.sha256()
    for name, tensor in sorted(detector.state_dict().items()):
        content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        found.update(f"{name} {tensor.dtype} {list(tensor.shape)}\n".encode())
        found.update(content.numpy())
    return found.hexdigest()[:16]


def _identity(
    model: LoadedModel, images: Sequence[Image], settings: Settings, masks: bool
) -> dict[str, object]:
    """What has to be the same for going on with a prediction."""
    names = "\n".join(f"{image_id} {path.name}" for image_id, path in images)
    size = asdict(model.config.input)
    return {
        "version": 1,
        "per_class": settings.per_class,
        "score": settings.score,
        "nms": list(settings.nms),
        "masks": masks,
        "step": model.step,
        "weights": checksum(model.detector),
        "images": hashlib.sha256(names.encode()).hexdigest()[:16],
        "size": {name: size[name] for name in ("by", "sizes", "largest", "test_size")},
    }


def _require_different(images: Sequence[Image]) -> None:
    seen: set[int] = set()
    for image_id, path in images:
        if image_id in seen:
            raise InputError(f"{path}: image id {image_id} is there twice")
        seen.add(image_id)


def _written(path: Path, nms: float, per_class: int) -> Written:
    counts = class_counts(path)
    full = sum(count >= per_class for count in counts.values())
    return Written(path, nms, counts.total(), len(counts), full)
