"""Predicts the best detections of each class over a whole set of images, and the best of each
image."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from torch import nn

from lvdet.errors import InputError
from lvdet.files.detection_files import require_format
from lvdet.files.progress import Progress, Update, track
from lvdet.files.stream import detection_tables
from lvdet.inference.batches import BatchSplitter, Image
from lvdet.inference.box_pass import find_boxes
from lvdet.inference.device import Execution
from lvdet.inference.job import Job
from lvdet.inference.job_identity import identity
from lvdet.inference.mask_pass import find_masks
from lvdet.inference.settings import Settings, Summary, Written
from lvdet.inference.shares import (
    join_boxes,
    join_masks,
    look_for_failure,
    parts,
    share,
    together,
)
from lvdet.inference.work_folder import DamagedImages, WorkFolder, WorkPaths
from lvdet.training.loop.processes import Process
from lvdet.training.records.checkpoint import LoadedModel

#: Maximum number of damaged images named in a note.
NAMED = 5


def predict(
    model: LoadedModel,
    images: Sequence[Image],
    out: Path,
    settings: Settings | None = None,
    progress: Progress | None = None,
    process: Process | None = None,
) -> Summary:
    """Writes the best detections of each class over all images and the best of each image over all
    classes, each once, in COCO format.

    images:  distinct ids, and files
    out:     a file (.json, .jsonl, or another format that `TopKWriter` writes); with several NMS
             thresholds, one file per threshold, see `Settings.targets`
    process: this process, if several share the images; all are called with the same arguments. The
             result is the same as from one process, and the first returns the summary of the files

    The first pass finds boxes and keeps the best; the second computes their masks. Finished work
    is kept in OUT.work until the end, so that the next call resumes after a kill. Among equal
    scores the earlier image wins.
    """
    settings = settings or Settings()
    started = time.monotonic()
    require_format(out)
    _require_different(images)
    masks = settings.masks and model.config.model.masks
    targets = settings.targets(out)
    execution = Execution.of(model.detector, model.config.run.channels_last, settings.precision)
    process = process or Process(0, 1, execution.device)
    paths = WorkPaths(out, targets)
    splitter = BatchSplitter(settings.batch)
    starts = _Starts()
    with ExitStack() as stack:
        work: WorkFolder | None = None
        with together(process, paths.failed):
            if process.first:
                names = identity(model, images, settings, masks, process.world)
                work = stack.enter_context(
                    WorkFolder(out, targets, names, overwrite=settings.overwrite)
                )
        complete = process.largest(work is not None and work.complete)
        damaged = DamagedImages(paths.damaged(process.rank))
        if not complete:
            job = Job(
                model.detector,
                share(images, settings.batch, process),
                model.config.input,
                model.category_ids.tolist(),
                settings,
                splitter,
                execution,
                damaged.add,
                partial(look_for_failure, process, paths.failed),
            )
            with execution.current(), _evaluating(model.detector):
                _both_passes(job, process, paths, masks, progress, starts)
        named: dict[int, str] = {}
        files: list[Written] = []
        with together(process, paths.failed):
            if work is not None:
                for rank in range(process.world):
                    named |= DamagedImages(paths.damaged(rank)).names
                work.finish()
                files = [
                    _written(path, nms, settings.dets_per_class)
                    for path, nms in zip(targets, settings.nms, strict=True)
                ]
    return Summary(
        images=len(images),
        masks=masks,
        batch=splitter.limit,
        seconds=round(time.monotonic() - started, 3),
        starting=round(starts.seconds, 3),
        files=files,
        notes=[*splitter.notes, *_damaged_note(named)],
        damaged=named,
    )


def _both_passes(
    job: Job,
    process: Process,
    paths: WorkPaths,
    masks: bool,
    progress: Progress | None,
    starts: _Starts,
) -> None:
    """Computes the results in the work folder."""
    settings, failed = job.settings, paths.failed
    numbers = range(len(settings.nms))
    outcomes = [paths.outcome(number) for number in numbers]
    boxes = [paths.boxes(number) for number in numbers] if masks else outcomes
    with together(process, failed):
        title = "boxes (1 of 2)" if masks else "boxes"
        with track(progress, title, "images") as update:
            find_boxes(
                job, [parts(path, process)[process.rank] for path in boxes], starts.watch(update)
            )
    with together(process, failed):
        for path in boxes if process.first else ():
            if not path.exists():
                join_boxes(parts(path, process), path, settings, job.category_ids)
    if not masks:
        return
    with together(process, failed), track(progress, "masks (2 of 2)", "images") as update:
        mine = [parts(path, process)[process.rank] for path in outcomes]
        find_masks(job, boxes, mine, starts.watch(update))
    with together(process, failed):
        for path in outcomes if process.first else ():
            if not path.exists():
                join_masks(parts(path, process), path)


class _Starts:
    """Measures the time until each pass writes its first batch."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def watch(self, update: Update | None) -> Update:
        """Starts the clock for a pass; forwards its progress to `update`, if given."""
        started: list[float] = [time.monotonic()]

        def report(done: int, total: int) -> None:
            if started:
                self.seconds += time.monotonic() - started.pop()
            if update is not None:
                update(done, total)

        return report


@contextmanager
def _evaluating(detector: nn.Module) -> Iterator[None]:
    was_training = detector.training
    detector.eval()
    try:
        yield
    finally:
        detector.train(was_training)


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
