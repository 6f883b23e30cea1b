"""The best K detections of each class over a whole set of images."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TypeAlias

from lvdet.errors import InputError
from lvdet.predict.batches import Image, Portions
from lvdet.predict.box_pass import find_boxes
from lvdet.predict.device import Execution
from lvdet.predict.identity import identity
from lvdet.predict.mask_pass import find_masks
from lvdet.predict.settings import Settings, Summary, Written
from lvdet.predict.sinks import class_counts, require_format
from lvdet.predict.work_folder import WorkFolder
from lvdet.read.files import Progress
from lvdet.train.checkpoint import LoadedModel

#: Damaged images that are named in a note.
NAMED = 5

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
    execution = Execution.of(model.detector, model.config.run.channels_last, settings.precision)
    with WorkFolder(
        out, targets, identity(model, images, settings, masks), overwrite=settings.overwrite
    ) as work:
        outcomes = [work.outcome(number) for number in range(len(targets))]
        boxes = [work.boxes(number) for number in range(len(targets))] if masks else outcomes
        if not work.complete:
            was_training = model.detector.training
            model.detector.eval()
            size = model.config.input
            try:
                with execution.current(), watch("boxes (1 of 2)" if masks else "boxes") as progress:
                    find_boxes(
                        model.detector,
                        images,
                        boxes,
                        size=size,
                        category_ids=category_ids,
                        settings=settings,
                        portions=portions,
                        execution=execution,
                        leave_out=work.leave_out,
                        progress=progress,
                    )
                if masks:
                    with execution.current(), watch("masks (2 of 2)") as progress:
                        find_masks(
                            model.detector,
                            images,
                            boxes,
                            outcomes,
                            size=size,
                            category_ids=category_ids,
                            settings=settings,
                            portions=portions,
                            execution=execution,
                            leave_out=work.leave_out,
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
        notes=[*portions.notes, *_damaged_note(work.damaged)],
        damaged=work.damaged,
    )


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


def _damaged_note(damaged: Mapping[int, str]) -> list[str]:
    if not damaged:
        return []
    names = [*damaged.values()]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return [
        f"damaged images, which have no detections: {len(names):,} "
        f"({', '.join(names[:NAMED])}{more})"
    ]
