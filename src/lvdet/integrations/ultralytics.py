"""Validators of Ultralytics that also compute AP-Old, AP-Fixed and AP-Pool:

metrics = model.val(validator=validator("annotations.json"), data="data.yaml", max_det=1000)
metrics.lvdet["bbox"]["fixed"].AP
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch.distributed

from lvdet.errors import InputError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.extras import needed
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.known_images import KnownImages
from lvdet.integrations.loop_results import (
    LoopResults,
    Share,
    evaluate_results,
    label_ids,
    repeated,
)
from lvdet.tables.ground_truth import GroundTruth

with needed(["ultralytics"], "lvdet.integrations.ultralytics", "pip install ultralytics"):
    from ultralytics.models.yolo.detect import DetectionValidator
    from ultralytics.models.yolo.segment import SegmentationValidator
    from ultralytics.utils import LOGGER, RANK, ops

#: Letters by which Ultralytics tells the metrics of boxes and masks.
LETTERS = {"bbox": "B", "segm": "M"}


class _Evaluated(DetectionValidator):  # type: ignore[misc]
    """Writes what counts to `predictions.json`, with the annotations' ids, and evaluates it.

    `validator` makes the classes to use; these say what they evaluate:

    gt:             the annotations
    dets_per_class: budget of AP-Fixed and AP-Pool
    iou:            what is compared: boxes, and masks
    """

    gt: GroundTruth
    dets_per_class: int
    iou: Sequence[str] = ("bbox",)

    def init_metrics(self, model: Any) -> None:
        """Starts anew."""
        super().init_metrics(model)
        # Ultralytics' own list of all detections stays empty.
        self.is_custom_json = self.build_gdict = False
        self.gdict = None
        names = model.names  # by label, or in their order
        if isinstance(names, Mapping):
            names = [names[label] for label in sorted(names)]
        self._known = KnownImages(self.gt)
        self._found = LoopResults(
            self.gt,
            label_ids(self.gt, names),
            dets_per_class=self.dets_per_class,
            folder=Path(self.save_dir),
        )

    def update_metrics(self, preds: Sequence[Any], batch: dict[str, Any]) -> None:
        """Adds the detections of a batch."""
        save_json, self.args.save_json = self.args.save_json, False
        super().update_metrics(preds, batch)
        self.args.save_json = save_json
        ids, problems = self._known.find([Path(path).as_posix() for path in batch["im_file"]])
        for place, problem in problems:
            raise InputError(f"{batch['im_file'][place]}: {problem} in {self.gt.source}")
        for place, pred in enumerate(preds):
            given = self._prepare_batch(place, batch)
            found = self.scale_preds(self._prepare_pred(pred), given)
            corners, masks = found["bboxes"], found["masks"] if "segm" in self.iou else None
            self._found.add(int(ids[place]), corners, found["conf"], found["cls"], masks)

    def gather_stats(self) -> None:
        """Collects the files of all processes."""
        super().gather_stats()
        share = self._found.share()
        self._shares: list[Share] = [share]
        if RANK >= 0:
            everyone: list[Any] = [None] * torch.distributed.get_world_size()
            torch.distributed.all_gather_object(everyone, share)
            self._shares = everyone

    def get_stats(self) -> dict[str, Any]:
        """Ultralytics' metrics, and lvdet's as `fixed/AP(B)`."""
        stats: dict[str, Any] = super().get_stats()
        target = Path(self.save_dir) / "predictions.json"
        path = self._found.join(self._shares, target)
        if again := repeated(self._shares):
            LOGGER.info(f"{again} images were seen again; each counts once")
        LOGGER.info(f"Saving {target}...")
        results: dict[str, Evaluation] = {}
        for iou in self.iou:
            result = evaluate_results(self.gt, path, iou, dets_per_class=self.dets_per_class)
            results[iou] = result
            LOGGER.info(f"\n{result}")
            for name, found in result.items():
                stats |= {
                    f"{name}/{metric}({LETTERS[iou]})": value
                    for metric, value in found.items()
                    if metric.startswith("AP")
                }
        self.metrics.lvdet = results
        return stats

    def eval_json(self, stats: dict[str, Any]) -> dict[str, Any]:
        """lvdet has evaluated already."""
        return stats


class _EvaluatedMasks(_Evaluated, SegmentationValidator):  # type: ignore[misc]
    """Masks at the resolution of the network's input, not of its prototypes."""

    iou = ("bbox", "segm")

    def init_metrics(self, model: Any) -> None:
        """Starts anew."""
        super().init_metrics(model)
        self.process = ops.process_mask_native


def validator(
    annotations: GroundTruth | str | os.PathLike[str],
    *,
    masks: bool = False,
    dets_per_class: int = 10_000,
    base: type | None = None,
) -> type:
    """A validator class for `model.val(validator=…)`, over annotations in LVIS's or COCO's format,
    which name the images by file.

    The numbers are in `metrics.lvdet`, an `Evaluation` for "bbox" and, with masks, one for "segm".
    `predictions.json` in the folder of the run holds what they were computed from. Raise `max_det`
    and lower `conf`: Ultralytics keeps 300 detections per image by default.

    masks: for segmentation models
    base:  a validator of yours to add this to
    """
    gt = annotations
    if not isinstance(gt, GroundTruth):
        gt = read_ground_truth(gt, masks=masks)
    kind = _EvaluatedMasks if masks else _Evaluated
    bases = (kind,) if base is None else (kind, base)
    return type("LvdetValidator", bases, {"gt": gt, "dets_per_class": dets_per_class})
