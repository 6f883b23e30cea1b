"""A Detectron2 evaluator, and inference in two passes that makes only the masks that count."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lvdet.errors import InputError, LvdetError
from lvdet.extras import needed
from lvdet.files.annotation_files import read_ground_truth
from lvdet.inference.box_file import BoxFile, Rows
from lvdet.inference.paste import paste
from lvdet.integrations.loop_results import LoopResults, Share, evaluate_results, repeated
from lvdet.tables.masks import Masks, no_masks

INSTALL = "see https://detectron2.readthedocs.io/en/latest/tutorials/install.html"
with needed(["detectron2"], "lvdet.integrations.detectron2", INSTALL):
    from detectron2.data import MetadataCatalog
    from detectron2.evaluation import DatasetEvaluator, inference_context
    from detectron2.structures import Boxes, Instances
    from detectron2.utils import comm
    from detectron2.utils.file_io import PathManager

TASKS = ("bbox", "segm")
#: Numbers that a mask head computes at a time, over all boxes and classes.
MASK_VALUES, MASK_SIDE = 1 << 27, 28

Input = Mapping[str, Any]


class LVISEvaluator(DatasetEvaluator):  # type: ignore[misc]
    """Detectron2's `LVISEvaluator` in bounded memory, for LVIS's and COCO's annotations.

    Its "bbox" and "segm" are AP-Old, as Detectron2 computes it; "bbox_fixed", "bbox_pool",
    "segm_fixed" and "segm_pool" are AP-Fixed and AP-Pool. All are percentages, NaN where
    undefined. An image that the sampler repeats counts once.

    tasks:      any of "bbox" and "segm"; by default boxes, and masks if there are any
    output_dir: where `lvis_instances_results.json` is written, for `lvdet evaluate`
    max_dets_per_image: budget of AP-Old; by default LVIS's 300, or COCO's 100 per class
    dets_per_class: budget of AP-Fixed and AP-Pool
    """

    def __init__(
        self,
        dataset_name: str,
        tasks: Sequence[str] | None = None,
        distributed: bool = True,
        output_dir: str | None = None,
        *,
        max_dets_per_image: int | None = None,
        dets_per_class: int = 10_000,
    ) -> None:
        unknown = set(tasks or ()).difference(TASKS)
        if unknown:
            raise InputError(f"unknown task {min(unknown)!r}, expected 'bbox' or 'segm'")
        metadata = MetadataCatalog.get(dataset_name)
        self._gt = read_ground_truth(PathManager.get_local_path(metadata.json_file))
        self.category_ids = _category_ids(metadata, int(self._gt.categories.ids[-1]))
        self._tasks, self._distributed = tasks, distributed
        self._target: Path | None = None
        if output_dir is not None:
            self._target = Path(output_dir) / "lvis_instances_results.json"
        self._per_image, self._per_class = max_dets_per_image, dets_per_class
        self._masks = False
        self._found: LoopResults | None = None

    def reset(self) -> None:
        """Starts anew."""
        self._found, self._masks = self.results(), False

    def results(self) -> LoopResults:
        """An empty collection with this evaluator's budgets."""
        return LoopResults(
            self._gt,
            self.category_ids,
            dets_per_class=self._per_class,
            dets_per_image=self._per_image,
            folder=None if self._target is None else self._target.parent,
        )

    def process(self, inputs: Sequence[Input], outputs: Sequence[Mapping[str, Any]]) -> None:
        """Adds the detections of a batch."""
        for given, output in zip(inputs, outputs, strict=True):
            found = output["instances"]
            masks = found.pred_masks if found.has("pred_masks") else None
            self._masks |= masks is not None
            corners, classes = found.pred_boxes.tensor, found.pred_classes
            self._collected().add(given["image_id"], corners, found.scores, classes, masks)

    def add_rows(self, image_id: int, rows: Rows, masks: Masks) -> None:
        """Adds an image's chosen boxes and their masks."""
        self._masks = True
        self._collected().add_boxes(image_id, rows.box, rows.score, rows.label, masks)

    def evaluate(self) -> OrderedDict[str, dict[str, float]] | None:
        """The numbers, in the main process; None in others."""
        collected = self._collected()
        gathered: list[tuple[Share, bool]] = self.gather((collected.share(), self._masks))
        try:
            if self._distributed and not comm.is_main_process():
                return None
            shares = [share for share, _ in gathered]
            return self._numbers(collected, shares, any(masks for _, masks in gathered))
        finally:
            if self._distributed:
                comm.synchronize()  # the main process reads the files of all
            collected.remove()
            self._found = None

    def gather(self, value: Any, everywhere: bool = False) -> list[Any]:
        """What all processes have, in the main process, or in all of them."""
        if not self._distributed:
            return [value]
        found: list[Any] = comm.all_gather(value) if everywhere else comm.gather(value)
        return found

    def _collected(self) -> LoopResults:
        if self._found is None:
            self.reset()
            assert self._found is not None
        return self._found

    def _numbers(
        self, collected: LoopResults, shares: Sequence[Share], masks: bool
    ) -> OrderedDict[str, dict[str, float]]:
        logger = logging.getLogger(__name__)
        if again := repeated(shares):
            logger.info(f"{again} images were seen again; each counts once")
        path = collected.join(shares, self._target)
        numbers: OrderedDict[str, dict[str, float]] = OrderedDict()
        for task in self._tasks or TASKS[: 1 + masks]:
            result = evaluate_results(
                self._gt,
                path,
                task,
                dets_per_class=self._per_class,
                dets_per_image=self._per_image,
                mask_area=True,
            )
            logger.info(f"\n{result}")
            for name, found in result.items():
                key = task if name == "old" else f"{task}_{name}"
                numbers[key] = {
                    metric: 100 * value
                    for metric, value in found.items()
                    if metric.startswith("AP")
                }
        return numbers


def _category_ids(metadata: Any, last: int) -> list[int]:
    """The category id of each label: by the data set's map, or else, as for LVIS, label + 1."""
    known = metadata.get("thing_dataset_id_to_contiguous_id")
    if known is None:
        return list(range(1, last + 1))
    return sorted(known, key=lambda class_id: int(known[class_id]))


def evaluate_in_two_passes(
    model: Any, data_loader: Iterable[Sequence[Input]], evaluator: LVISEvaluator
) -> Mapping[str, Mapping[str, float]]:
    """Evaluates boxes and masks of a `GeneralizedRCNN` with a mask head; `inference_on_dataset`
    would paste 10,000 full-size masks per image.

    The first pass finds boxes, without masks, of which the evaluator's budgets keep the best over
    the whole data set. The second makes masks for these, as run lengths. The loader must yield the
    same images in both passes.
    """
    with inference_context(model), torch.no_grad():
        boxes = evaluator.results()
        with _without_masks(model):
            for inputs in data_loader:
                for given, output in zip(inputs, model(inputs), strict=True):
                    found = output["instances"]
                    corners, classes = found.pred_boxes.tensor, found.pred_classes
                    boxes.add(given["image_id"], corners, found.scores, classes)
        shares = evaluator.gather(boxes.share(), everywhere=True)
        first = boxes.join(shares) if shares[0].path == boxes.path else None
        path = evaluator.gather(first, everywhere=True)[0]
        kept = BoxFile(path, evaluator.category_ids)
        todo = _own(shares, boxes)
        evaluator.reset()
        for inputs in data_loader:
            rows: dict[int, Rows] = {}
            for given in inputs:
                if given["image_id"] in todo:
                    todo.remove(given["image_id"])
                    rows[given["image_id"]] = kept.next(given["image_id"])
            for image_id, masks in _masks(model, inputs, rows):
                evaluator.add_rows(image_id, rows.pop(image_id), masks)
        evaluator.gather(None, everywhere=True)  # until all have read the file
        boxes.remove()
    return evaluator.evaluate() or {}


def _own(shares: Sequence[Share], boxes: LoopResults) -> set[int]:
    """The images of this process that no earlier one has."""
    found: set[int] = set()
    for share in shares:
        new = set(share.images) - found
        if share.path == boxes.path:
            return new
        found |= new
    raise LvdetError(f"{boxes.path} is not among the files of all processes")


@contextmanager
def _without_masks(model: Any) -> Iterator[None]:
    heads: Any = getattr(model, "roi_heads", None)
    if not getattr(heads, "mask_on", False):
        raise InputError(
            f"{type(model).__name__} has no roi_heads with a mask head: use inference_on_dataset"
        )
    heads.mask_on = False
    try:
        yield
    finally:
        heads.mask_on = True


def _masks(
    model: Any, inputs: Sequence[Input], rows: Mapping[int, Rows]
) -> Iterator[tuple[int, Masks]]:
    """Images and the masks of their boxes. The whole batch is computed, because what pads an image
    reaches into its features."""
    images = model.preprocess_image(inputs)
    features = model.backbone(images.tensor)
    for place, given in enumerate(inputs):
        if given["image_id"] in rows:
            own = {name: level[place : place + 1] for name, level in features.items()}
            resized = tuple(images.image_sizes[place])
            size = given.get("height", resized[0]), given.get("width", resized[1])
            of_image = rows[given["image_id"]]
            yield given["image_id"], _masks_of_image(model, own, resized, size, of_image)


def _masks_of_image(
    model: Any,
    features: Mapping[str, torch.Tensor],
    resized: tuple[int, ...],
    size: tuple[int, int],
    rows: Rows,
) -> Masks:
    """The masks of an image's boxes, some boxes at a time."""
    scale = np.array(resized) / np.array(size)
    corners = rows.corners * np.tile(scale[::-1], 2)
    at_a_time = max(1, MASK_VALUES // (model.roi_heads.num_classes * MASK_SIDE**2))
    made = [no_masks(0)]
    for begin in range(0, len(rows), at_a_time):
        of = slice(begin, begin + at_a_time)
        part = Instances(resized)
        part.pred_boxes = Boxes(torch.as_tensor(corners[of], dtype=torch.float32)).to(model.device)
        part.pred_classes = torch.as_tensor(rows.label[of], device=model.device)
        (part,) = model.roi_heads.forward_with_given_boxes(features, [part])
        chance = part.pred_masks[:, 0]
        made.append(paste(chance, rows.corners[of], np.tile(size, (len(chance), 1))))
    return Masks.concatenate(made)
