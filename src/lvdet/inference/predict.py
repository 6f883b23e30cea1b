"""The best detections of each class over a whole set of images, and of each image."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from lvdet.errors import InputError
from lvdet.files.detection_files import WRITTEN
from lvdet.files.progress import Progress, track
from lvdet.files.stream import detection_tables
from lvdet.files.writing import require_ending
from lvdet.inference.batches import Image, Portions
from lvdet.inference.box_pass import find_boxes
from lvdet.inference.device import Execution
from lvdet.inference.job import Job
from lvdet.inference.job_identity import identity
from lvdet.inference.mask_pass import find_masks
from lvdet.inference.settings import Settings, Summary, Written
from lvdet.inference.work_folder import WorkFolder
from lvdet.training.records.checkpoint import LoadedModel

#: Damaged images that are named in a note.
NAMED = 5


def predict(
    model: LoadedModel,
    images: Sequence[Image],
    out: Path,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Writes the best detections of each class over all images and the best of each image over
    all classes, each once, in COCO's format.

    images: ids, all different, and files
    out:    a file (.json, .jsonl, or what else `TopKWriter` writes); of several thresholds of NMS
            each has its own, see `Settings.targets`

    The first pass looks for boxes and keeps the best, the second makes masks of those. What is
    finished is kept in OUT.work until the end: a killed process resumes when it is called again.
    Among equal scores the earlier image counts.
    """
    settings = settings or Settings()
    begun = time.monotonic()
    require_ending(out, WRITTEN)
    _require_different(images)
    masks = settings.masks and model.config.model.masks
    targets = settings.targets(out)
    portions = Portions(settings.batch)
    execution = Execution.of(model.detector, model.config.run.channels_last, settings.precision)
    with WorkFolder(
        out, targets, identity(model, images, settings, masks), overwrite=settings.overwrite
    ) as work:
        outcomes = [work.outcome(number) for number in range(len(targets))]
        boxes = [work.boxes(number) for number in range(len(targets))] if masks else outcomes
        job = Job(
            model.detector,
            images,
            model.config.input,
            model.category_ids.tolist(),
            settings,
            portions,
            execution,
            work.leave_out,
        )
        if not work.complete:
            was_training = model.detector.training
            model.detector.eval()
            try:
                with execution.current():
                    title = "boxes (1 of 2)" if masks else "boxes"
                    with track(progress, title, "images") as update:
                        find_boxes(job, boxes, update)
                    if masks:
                        with track(progress, "masks (2 of 2)", "images") as update:
                            find_masks(job, boxes, outcomes, update)
            finally:
                model.detector.train(was_training)
        work.finish()
    return Summary(
        images=len(images),
        masks=masks,
        batch=portions.limit,
        seconds=round(time.monotonic() - begun, 3),
        files=[
            _written(path, nms, settings.dets_per_class)
            for path, nms in zip(targets, settings.nms, strict=True)
        ],
        notes=[*portions.notes, *_damaged_note(work.damaged)],
        damaged=work.damaged,
    )


def _require_different(images: Sequence[Image]) -> None:
    seen: set[int] = set()
    for image_id, path in images:
        if image_id in seen:
            raise InputError(f"{path}: image id {image_id} occurs more than once")
        seen.add(image_id)


def _written(path: Path, nms: float, dets_per_class: int) -> Written:
    counts: Counter[int] = Counter()
    for table in detection_tables(path, masks=False):
        found = np.bincount(table.category, minlength=len(table.category_ids))
        counts.update(dict(zip(table.category_ids.tolist(), found.tolist(), strict=True)))
    full = sum(count >= dets_per_class > 0 for count in counts.values())
    return Written(path, nms, counts.total(), len(+counts), full)


def _damaged_note(damaged: Mapping[int, str]) -> list[str]:
    if not damaged:
        return []
    names = [*damaged.values()]
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return [
        f"damaged images, left without detections: {len(names):,} "
        f"({', '.join(names[:NAMED])}{more})"
    ]
