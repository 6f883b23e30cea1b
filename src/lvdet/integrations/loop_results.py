"""The detections of an evaluation loop, in one process or several, in bounded memory."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lvdet.errors import InputError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.protocols import (
    COCO_PER_IMAGE_CLASS,
    FIXED_PER_CLASS,
    LVIS_PER_IMAGE,
    Plan,
    evaluate_pair,
)
from lvdet.files.detection_files import write_tables
from lvdet.files.stream import detection_tables
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.writers.image_rows import image_boxes
from lvdet.writers.merge import merge_top_k
from lvdet.writers.top_k_writer import TopKWriter


class Share(NamedTuple):
    """What one process found.

    path:     a Parquet file with what its budgets keep
    images:   ids of its images, in order
    repeated: images that it saw again, and counted once
    """

    path: Path
    images: list[int]
    repeated: int


class LoopResults:
    """Collects detections in a folder of its own, which goes with it.

    gt:             the annotations, whose protocols say which detections can count
    category_ids:   the category id of each label
    dets_per_class: budget of AP-Fixed and AP-Pool
    dets_per_image: budget of AP-Old; by default, the annotations' own
    folder:         where the folder is made, on a disk that all processes see
    """

    def __init__(
        self,
        gt: GroundTruth,
        category_ids: Sequence[int],
        *,
        dets_per_class: int = FIXED_PER_CLASS,
        dets_per_image: int | None = None,
        folder: Path | None = None,
    ) -> None:
        if dets_per_image is None:
            everything = COCO_PER_IMAGE_CLASS * len(gt.categories)  # more per image cannot count
            dets_per_image = LVIS_PER_IMAGE if gt.federated else everything
        self._per_class, self._per_image = dets_per_class, dets_per_image
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix=".lvdet-", dir=folder))
        self.path = self._folder / "detections.parquet"
        self._writer = TopKWriter(
            self.path,
            dets_per_class=dets_per_class,
            dets_per_image=dets_per_image,
            category_ids=category_ids,
        )
        self._repeated = 0
        #: Deletes the folder; at the latest when this is collected, or the process ends.
        self.remove = weakref.finalize(self, _remove, self._folder, self._writer)

    def add(self, image_id: Any, corners: Any, scores: Any, labels: Any, masks: Any = None) -> None:
        """Adds an image once; samplers that fill up the last batch repeat some.

        corners: [n, 4] x1, y1, x2, y2
        """
        box = image_boxes(corners, "xyxy", f"image {image_id}", rounded=True)
        self.add_boxes(image_id, box, scores, labels, masks)

    def add_boxes(self, image_id: Any, box: Any, scores: Any, labels: Any, masks: Any) -> None:
        """Adds an image with boxes as x, y, width and height."""
        if image_id in self._writer:
            self._repeated += 1
        else:
            self._writer.add(image_id, box, scores, labels, masks)

    def share(self) -> Share:
        """Completes this process's file."""
        images = list(self._writer.images)
        self._writer.close()
        return Share(self.path, images, self._repeated)

    def join(self, shares: Sequence[Share], target: Path | None = None) -> Path:
        """Joins the files of all processes, in one of them. An image that several processes saw
        counts once: the budgets of each keep all that is among the best of the distinct images."""
        for share in shares:
            if not share.path.exists():
                raise InputError(
                    f"{share.path}: written by another process, but not visible here: choose an "
                    "output folder on a disk that all processes see"
                )
        joined = shares[0].path
        if len(shares) > 1:
            joined = self._folder / "joined.parquet"
            write_tables(_distinct(shares), joined)
        if target is None and len(shares) == 1:
            return joined
        target = self._folder / "kept.parquet" if target is None else target
        target.parent.mkdir(parents=True, exist_ok=True)
        merge_top_k(joined, target, dets_per_class=self._per_class, dets_per_image=self._per_image)
        return target


def _remove(folder: Path, writer: TopKWriter) -> None:
    writer.__exit__(InputError)  # a writer that was not closed writes nothing
    shutil.rmtree(folder, ignore_errors=True)


def _distinct(shares: Sequence[Share]) -> Iterator[Detections]:
    """The rows of all processes; of each image, those of the first that saw it."""
    seen: set[int] = set()
    for share in shares:
        before = np.array(sorted(seen.intersection(share.images)), dtype=np.int64)
        for table in detection_tables(share.path):
            yield table[~np.isin(table.image_ids[table.image], before)]
        seen.update(share.images)


def repeated(shares: Sequence[Share]) -> int:
    """How many times an image was seen again."""
    images = [image for share in shares for image in share.images]
    return len(images) - len(set(images)) + sum(share.repeated for share in shares)


def evaluate_results(
    gt: GroundTruth,
    results: str | os.PathLike[str],
    iou: str,
    *,
    dets_per_class: int | None = None,
    dets_per_image: int | None = None,
    mask_area: bool = False,
) -> Evaluation:
    """AP-Old, AP-Fixed and AP-Pool of a file, with the quirks of the reference tools, so that
    numbers equal those of the frameworks' own evaluators.

    mask_area: a detection's area is its mask's, even if it has a box
    """
    plan = Plan(dets_per_image=dets_per_image, dets_per_class=dets_per_class)
    options = MatchOptions(iou, exact_lvis=True, mask_area=mask_area)
    return evaluate_pair(load_pair(gt, results, plan.needs, options), plan)


def label_ids(gt: GroundTruth, names: Sequence[str] | None) -> list[int]:
    """The category id of each label 0, 1, …: by name if the annotations have all of the `names`,
    otherwise in the order of the ids."""
    ids: list[int] = gt.categories.ids.tolist()
    by_name = dict(zip(gt.categories.names, ids, strict=True))
    if names is not None and len(by_name) == len(ids) and by_name.keys() >= set(names):
        return [by_name[name] for name in names]
    if names is not None and len(names) != len(ids):
        raise InputError(
            f"{gt.source}: has {len(ids):,} classes, but the detector has {len(names):,}, and some "
            "of their names differ"
        )
    return ids
