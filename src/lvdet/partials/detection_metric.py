"""A metric for training and validation loops: images go in, numbers come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from lvdet.errors import InputError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.load_pair import Annotations
from lvdet.evaluation.protocols import Plan
from lvdet.evaluation.summary import PROTOCOLS
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.box_formats import BOX_FORMATS, normalized
from lvdet.limits.budgets import Budget
from lvdet.matching.match_options import MatchOptions
from lvdet.partials.image_buffer import (
    Item,
    SeenImage,
    image_id_of,
    numbered,
    seen_image,
    target_table,
)
from lvdet.partials.partial import Partial, merge_partials, partial_of
from lvdet.tables.categories import Categories
from lvdet.tables.description import counted, describe_line
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import rows_of
from lvdet.writers.image_rows import detection_table

#: Images, rows and bytes of masks that are collected before they are matched.
IMAGES, ROWS, MASK_BYTES = 1 << 12, 1 << 16, 1 << 26
FORMATS = tuple(name for name in BOX_FORMATS if not normalized(name))


class DetectionMetric:
    """AP-Old, AP-Fixed and AP-Pool of the images of a loop, in memory bounded by the budgets.

    gt: the annotations of all images, a table or a path. Numbers are then those of `evaluate` on a
        file with the predictions. Without them, annotations are the targets of the images.
    iou: "bbox", "segm" or "boundary".
    box_format: of predictions and targets: "xyxy", "xywh" or "cxcywh", in pixels.
    categories: the classes, if there is no gt: `Categories`, or names by id. By default, classes
        are the labels that occur.
    federated: targets have LVIS's lists of class ids, "neg_category_ids" and
        "not_exhaustive_category_ids".

    See `evaluate` for the other arguments. Padded samplers repeat images: each counts once. Equal
    scores rank as in a file whose images are in order of id, so that numbers depend neither on the
    order of the loop nor on the number of processes.
    """

    def __init__(
        self,
        gt: Annotations | None = None,
        *,
        iou: str = "bbox",
        box_format: str = "xyxy",
        categories: Categories | Mapping[int, str] | None = None,
        federated: bool = False,
        protocols: Sequence[str] = PROTOCOLS,
        dets_per_image: int | None = None,
        dets_per_class: int | None = None,
        classes: str | Iterable[int | str] | None = None,
        groups: Mapping[str, Iterable[int | str]] | None = None,
        thresholds: Sequence[float] | None = None,
        budgets: Sequence[Sequence[Budget]] = (),
        like: str | None = None,
        exact_lvis: bool = False,
    ) -> None:
        if box_format not in FORMATS:
            raise InputError(f"box format is {box_format!r}, expected one of {', '.join(FORMATS)}")
        if gt is not None and (categories is not None or federated):
            raise InputError("the annotations say what classes there are: pass only gt")
        chosen = list(classes) if classes is not None and not isinstance(classes, str) else classes
        if gt is None and categories is None and (classes is not None or groups is not None):
            raise InputError("classes and groups need to know all classes: pass categories or gt")
        self.gt = gt if gt is None or isinstance(gt, GroundTruth) else read_ground_truth(gt)
        self._categories = _categories(categories)
        self._federated = federated
        self._box_format = box_format
        self._plan = Plan(
            *(protocols, dets_per_image, dets_per_class, chosen, groups, budgets, like),
        )
        self._options = self._plan.options(MatchOptions(iou, thresholds, exact_lvis))
        self._masks = iou != "bbox"
        self._empty = self._matched([])  # refuses arguments that cannot be
        self.reset()

    def reset(self) -> None:
        """Forgets all images."""
        self._images: dict[int, SeenImage] = {}
        self._rows = self._mask_bytes = 0
        # From large to small, each at least twice as large as the next.
        self._parts: list[Partial] = []
        self._repeated = 0
        self._first_repeated: int | None = None

    def update(self, predictions: Sequence[Item], targets: Sequence[Item] | None = None) -> None:
        """Adds images.

        predictions: a mapping for each image: "boxes" [n, 4] (or "masks": [n, height, width]
            pixels, or run lengths as in COCO files, where masks are compared), "scores" [n] and
            "labels" [n], the class ids.
        targets: a mapping for each image: "image_id", and without gt also "boxes" or "masks" and
            "labels"; "area", "iscrowd" and "ignore" are optional.

        Arrays may be those of any framework. An image needs an id, in its target or its prediction:
        ids tell apart the images of all processes.
        """
        if isinstance(predictions, Mapping) or isinstance(targets, Mapping):
            raise InputError("predictions and targets are lists with a mapping for each image")
        if targets is not None and len(targets) != len(predictions):
            raise InputError(f"{len(predictions)} predictions for {len(targets)} targets")
        if targets is None and self.gt is None:
            raise InputError("without gt, each image needs a target")
        paired: list[Item | None] = [None] * len(predictions) if targets is None else list(targets)
        seen = [self._seen(*pair) for pair in zip(predictions, paired, strict=True)]
        for image in seen:  # all of them, or none
            if image.id in self._images:
                self._note_repeated([image.id])
                continue
            self._images[image.id] = image
            self._rows += image.rows
            self._mask_bytes += image.mask_bytes
        if len(self._images) >= IMAGES or self._rows >= ROWS or self._mask_bytes >= MASK_BYTES:
            self._fold()

    def compute(self) -> Evaluation:
        """The result for all images so far."""
        merged = self.partial()
        if self.gt is None:
            known = self._categories or numbered(merged.part.category_ids)
            result = merged.evaluate_own(known)
        else:
            result = merged.evaluate(self.gt)
        return replace(result, warnings=[*result.warnings, *self._repeat_warnings()])

    @property
    def repeated(self) -> int:
        """How often an image came that had come before."""
        self._fold()
        return self._repeated

    def emptied(self) -> DetectionMetric:
        """A metric with the same arguments and no images."""
        other = copy(self)
        other.reset()
        return other

    def partial(self) -> Partial:
        """The contribution of all images so far."""
        self._fold()
        if not self._parts:
            return self._empty
        if len(self._parts) > 1:
            self._parts = [merge_partials(self._parts)]
        return self._parts[0]

    def to_bytes(self) -> bytes:
        """The state, for another process or a file."""
        return self.partial().to_bytes()

    def merge(self, states: Iterable[bytes | Partial], *, repeated: int = 0) -> None:
        """Adds the states of other processes, made with the same arguments. An image that came in
        several counts as in the first of them. `repeated` is how often images came again in these
        processes, as far as each knows."""
        self._fold()
        self._repeated += repeated
        for state in states:
            part = state if isinstance(state, Partial) else Partial.from_bytes(state)
            self._empty.settings.require_equal(part.settings)
            for own in self._parts:
                again = part.image_ids[rows_of(own.image_ids, part.image_ids) >= 0]
                self._note_repeated(again.tolist())
            self._parts.append(part)
            if len(self._parts) > 1:
                self._parts = [merge_partials(self._parts, drop_repeated=True)]

    def __len__(self) -> int:
        return len(self._images) + sum(len(part.image_ids) for part in self._parts)

    def __repr__(self) -> str:
        self._fold()
        rows = sum(len(part) for part in self._parts)
        total = sum(part.total for part in self._parts)
        return describe_line(self, counted(len(self), "image"), f"{rows:,} of {total:,} detections")

    def _seen(self, prediction: Item, target: Item | None) -> SeenImage:
        image_id = image_id_of(prediction, target)
        if self.gt is not None and rows_of(self.gt.images.ids, np.array([image_id]))[0] < 0:
            raise InputError(f"image_id {image_id} is not in {self.gt.source}")
        return seen_image(
            *(prediction, None if self.gt is not None else target, image_id),
            box_format=self._box_format,
            masks=self._masks,
            lists=self._federated,
            categories=self._categories,
        )

    def _fold(self) -> None:
        """Matches the collected images; those that came before are left out."""
        if not self._images:
            return
        ids = np.array(sorted(self._images), dtype=np.int64)
        known = np.zeros(len(ids), dtype=bool)
        for part in self._parts:
            known |= rows_of(part.image_ids, ids) >= 0
        self._note_repeated(ids[known].tolist())
        images = [self._images[one] for one in ids[~known].tolist()]
        if images:
            self._parts.append(self._matched(images))
        self._images, self._rows, self._mask_bytes = {}, 0, 0
        while len(self._parts) > 1 and self._parts[-2].nbytes <= 2 * self._parts[-1].nbytes:
            self._parts[-2:] = [merge_partials(self._parts[-2:])]

    def _matched(self, images: Sequence[SeenImage]) -> Partial:
        """The contribution of images, by ascending id."""
        table = detection_table(
            [one.id for one in images],
            [one.predictions for one in images],
            "predictions",
            from_masks=self._masks,
        )
        gt = self.gt
        if gt is None:
            gt = target_table(
                images, self._categories, masks=self._masks, federated=self._federated
            )
        return partial_of(
            *(gt, table, self._plan, self._options),
            positions=np.zeros(len(table), dtype=np.int64),
            images=[image.id for image in images],
            own_truth=self.gt is None,
        )

    def _note_repeated(self, ids: Sequence[int]) -> None:
        self._repeated += len(ids)
        if len(ids) and self._first_repeated is None:
            self._first_repeated = ids[0]

    def _repeat_warnings(self) -> list[str]:
        if not self._repeated:
            return []
        images = "1 image was" if self._repeated == 1 else f"{self._repeated:,} images were"
        first = self._first_repeated
        which = "" if first is None else f" (first image_id {first})"
        return [f"{images} given again{which}, as padded samplers do: each counts once."]


def _categories(given: Categories | Mapping[int, str] | None) -> Categories | None:
    if given is None or isinstance(given, Categories):
        return given
    try:
        ids = sorted(given)
        found = np.array(ids, dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"categories are {given!r}, expected names by id") from None
    return Categories(
        found, tuple(str(given[one]) for one in ids), np.full(len(ids), "", dtype=np.str_)
    )
