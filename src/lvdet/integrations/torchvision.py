"""torchvision's `references/detection/coco_eval.py`: the same methods, one match at the end."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lvdet.errors import InputError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.integrations.dataset_tables import evaluate_dataset
from lvdet.integrations.image_collection import ImageCollection
from lvdet.integrations.pycocotools.coco import COCO
from lvdet.integrations.pycocotools.cocoeval import COCOeval
from lvdet.writers.arguments import to_numpy
from lvdet.writers.image_rows import ImageRows

__all__ = ["CocoEvaluator"]

_SOURCE = "predictions"


class CocoEvaluator:
    """Evaluates predictions batch by batch: `update`, `synchronize_between_processes`,
    `accumulate`, `summarize`.

    `coco_eval` has one evaluator per kind of overlap; set its `params` before the first `update`,
    and read its `stats` after `summarize`.

    coco_gt:   a `COCO` of pycocotools or of lvdet, or a path
    iou_types: "bbox", "segm" or both
    """

    def __init__(self, coco_gt: Any, iou_types: Sequence[str]) -> None:
        if not isinstance(iou_types, list | tuple):
            raise TypeError(
                f"iou_types is of type {type(iou_types).__name__}, expected a list or a tuple"
            )
        self.iou_types = iou_types
        with contextlib.redirect_stdout(io.StringIO()):
            if isinstance(coco_gt, str | os.PathLike):
                self.coco_gt = COCO(coco_gt)
            else:
                self.coco_gt = COCO()
                self.coco_gt.dataset = copy.deepcopy(coco_gt.dataset)
                self.coco_gt.createIndex()
        self.coco_eval = {one: COCOeval(self.coco_gt, iouType=one) for one in iou_types}
        self._rows = ImageCollection(_SOURCE)
        self._evaluated = False

    @property
    def img_ids(self) -> list[int]:
        """The images so far."""
        return [*self._rows]

    def update(self, predictions: Mapping[int, Mapping[str, Any]]) -> None:
        """Adds predictions by image id: `boxes` as corners, `scores`, `labels` and, for segm,
        `masks` as [n, 1, height, width] probabilities. An image that comes again is left out."""
        self._evaluated = False
        for image_id, one in predictions.items():
            if image_id not in self.coco_gt.imgs:
                raise InputError(f"{_SOURCE}: the annotations have no image {image_id}")
            if len(one) == 0:
                one = {"boxes": [], "scores": [], "labels": np.zeros(0, np.int64)}
            pixels = None
            if "segm" in self.iou_types and len(one["scores"]):
                pixels = np.asarray(to_numpy(one["masks"]))[:, 0] > 0.5
            self._rows.add(image_id, one["boxes"], one["scores"], one["labels"], pixels)

    def synchronize_between_processes(self) -> None:
        """Gives every process the predictions of all."""
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if distributed is None or not distributed.is_available():
            return
        if not distributed.is_initialized():
            return
        parts: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(parts, self._rows)
        merged = ImageCollection(_SOURCE)
        for part in parts:
            merged.merge(part)
        self._rows = merged
        self._evaluated = False

    def accumulate(self) -> None:
        """Matches, and computes `eval` of each evaluator."""
        if not self._evaluated:
            with contextlib.redirect_stdout(io.StringIO()):
                for iou_type, evaluation in self.coco_eval.items():
                    evaluation.cocoDt = self._results(iou_type)
                    evaluation.params.imgIds = sorted(self._rows)
                    evaluation.evaluate()
            self._evaluated = True
        for evaluation in self.coco_eval.values():
            evaluation.accumulate()

    def summarize(self) -> None:
        """Prints COCO's twelve numbers for each kind of overlap."""
        for iou_type, evaluation in self.coco_eval.items():
            print(f"IoU metric: {iou_type}")
            evaluation.summarize()

    def lvdet_evaluation(self, iou_type: str = "bbox", **options: Any) -> Evaluation:
        """AP-Old, AP-Fixed and AP-Pool of the same predictions: by LVIS's rules if the annotations
        list the verified classes of images. Takes the options of `lvdet.evaluate`."""
        dataset = self.coco_gt.dataset
        return evaluate_dataset(
            dataset,
            self._records(iou_type),
            image_ids=sorted(self._rows),
            class_ids=self.coco_gt.cats,
            federated=all("neg_category_ids" in one for one in dataset["images"]),
            **{"iou": iou_type, **options},
        )

    def _results(self, iou_type: str) -> COCO:
        records = self._records(iou_type)
        if records:
            return self.coco_gt.loadRes(records)
        empty = COCO()
        empty.dataset = {"annotations": []}
        return empty

    def _records(self, iou_type: str) -> list[dict[str, Any]]:
        """The predictions as COCO's result dicts, with boxes or with masks."""
        return [
            {"image_id": image, "category_id": category_id, "score": score} | shape
            for image in self._rows
            for category_id, score, shape in zip(
                self._rows[image].category_id.tolist(),
                self._rows[image].score.tolist(),
                _shapes(self._rows[image], iou_type),
                strict=True,
            )
        ]


def _shapes(row: ImageRows, iou_type: str) -> list[dict[str, Any]]:
    """The box or the mask of each detection, under its name in a result dict."""
    if iou_type == "bbox":
        return [{"bbox": box} for box in row.box.tolist()]
    masks = row.masks
    if masks is None:
        return []
    sizes = zip(masks.height.tolist(), masks.width.tolist(), strict=True)
    return [
        {"segmentation": {"size": list(size), "counts": masks.row(place).decode()}}
        for place, size in enumerate(sizes)
    ]
