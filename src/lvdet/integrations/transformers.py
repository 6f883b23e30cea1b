"""Object detection with transformers: `compute_metrics` for its Trainer, and its results as a
table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lvdet.errors import InputError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.load_pair import Annotations
from lvdet.evaluation.protocols import evaluate
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.box_formats import from_format
from lvdet.integrations.dataset_tables import ground_truth_table
from lvdet.integrations.image_rows import ClassIds, ImageRows
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.writers.arguments import to_numpy

__all__ = ["TrainerMetrics", "detections_from_transformers"]

_SOURCE = "transformers"


def detections_from_transformers(
    results: Sequence[Mapping[str, Any]],
    image_ids: Iterable[Any],
    *,
    class_ids: ClassIds | None = None,
) -> Detections:
    """What `post_process_object_detection` returned for images, as a table: dicts of `scores`,
    `labels` and `boxes` (two corners in pixels, so pass it `target_sizes`).

    class_ids: the class id of each label; by default labels are class ids
    """
    rows = ImageRows(_SOURCE, class_ids)
    ids = list(image_ids)
    if len(ids) != len(results):
        raise InputError(f"{_SOURCE}: {len(results)} results for {len(ids)} image ids")
    for image_id, one in zip(ids, results, strict=True):
        rows.add(image_id, one["boxes"], one["scores"], one["labels"])
    return rows.detections()


class TrainerMetrics:
    """`compute_metrics` for `transformers.Trainer`.

        Trainer(…, compute_metrics=TrainerMetrics(image_processor, "lvis_v1_val.json"))

    The training arguments need `eval_do_concat_batches=False`, or `batch_eval_metrics=True`, which
    keeps only detections in memory. Names in the log are such as eval_fixed_APr; undefined metrics
    are left out. Each image counts once. `result` is the latest evaluation.

    image_processor: its `post_process_object_detection` makes detections of the model's output
    gt:        the annotations; None takes the labels of the evaluation set, by COCO's rules
    threshold: minimum score (exclusive); AP needs all detections, so the default is 0
    class_ids: the class id of each label; by default labels are class ids
    options:   those of `lvdet.evaluate`
    """

    def __init__(
        self,
        image_processor: Any,
        gt: Annotations | None = None,
        *,
        threshold: float = 0.0,
        class_ids: ClassIds | None = None,
        **options: Any,
    ) -> None:
        self.result: Evaluation | None = None
        self._post_process = image_processor.post_process_object_detection
        self._gt = gt
        self._threshold = threshold
        self._class_ids = class_ids
        self._options = {"iou": "bbox", **options}
        self._start()

    def __call__(self, evaluation: Any, compute_result: bool = True) -> dict[str, float]:
        """Takes an `EvalPrediction`, of one batch or of all, and returns the metrics unless more
        batches follow."""
        labels = evaluation.label_ids
        one_batch = len(labels) > 0 and isinstance(labels[0], Mapping)
        outputs = [evaluation.predictions] if one_batch else evaluation.predictions
        for output, batch in zip(outputs, [labels] if one_batch else labels, strict=True):
            self._add(output, batch)
        if not compute_result:
            return {}
        gt = self._labels_table() if self._gt is None else self._gt
        if not isinstance(gt, GroundTruth):
            gt = self._gt = read_ground_truth(gt)
        self.result = evaluate(gt, self._rows.detections(), **self._options)
        self._start()
        return {
            f"{protocol}_{name}": float(value)
            for protocol, metrics in self.result.items()
            for name, value in metrics.items()
            if not np.isnan(value)
        }

    def _start(self) -> None:
        self._rows = ImageRows(_SOURCE, self._class_ids)
        self._images: list[dict[str, Any]] = []
        self._annotations: list[dict[str, Any]] = []

    def _add(self, output: Sequence[Any], labels: Sequence[Mapping[str, Any]]) -> None:
        """Adds the detections of a batch, and its labels."""
        import torch

        logits, boxes = _logits_and_boxes(output)
        sizes = np.stack([np.asarray(to_numpy(one["orig_size"])) for one in labels])
        results = self._post_process(
            _Output(torch.as_tensor(logits), torch.as_tensor(boxes)),
            threshold=self._threshold,
            target_sizes=torch.as_tensor(sizes),
        )
        for one, target in zip(results, labels, strict=True):
            image = int(np.asarray(to_numpy(target["image_id"])).item())
            if image in self._rows:
                continue
            self._rows.add(image, one["boxes"], one["scores"], one["labels"])
            if self._gt is None:
                self._add_objects(image, target)

    def _add_objects(self, image: int, target: Mapping[str, Any]) -> None:
        """Adds the objects of an image."""
        height, width = np.asarray(to_numpy(target["orig_size"])).tolist()
        self._images.append({"id": image, "height": height, "width": width})
        box = np.asarray(to_numpy(target["boxes"]), dtype=np.float64).reshape(-1, 4)
        box = from_format("cxcywhn", box, np.tile([float(width), float(height)], (len(box), 1)))
        labels = np.asarray(to_numpy(target["class_labels"])).tolist()
        crowd = np.asarray(to_numpy(target.get("iscrowd", np.zeros(len(box))))).tolist()
        area = _areas(target, box, height * width)
        ids = self._class_ids
        for place, label in enumerate(labels):
            self._annotations.append(
                {
                    "id": len(self._annotations) + 1,
                    "image_id": image,
                    "category_id": label if ids is None else ids[label],
                    "bbox": box[place].tolist(),
                    "area": area[place],
                    "iscrowd": crowd[place],
                }
            )

    def _labels_table(self) -> GroundTruth:
        """The labels of the evaluated images as annotations."""
        ids = self._class_ids
        listed = [] if ids is None else [*(ids.values() if isinstance(ids, Mapping) else ids)]
        found = self._rows.detections().category_ids.tolist()
        classes = {*listed, *found, *(one["category_id"] for one in self._annotations)}
        images = sorted(self._images, key=lambda one: one["id"])
        dataset = {
            "images": images,
            "annotations": self._annotations,
            "categories": [{"id": one} for one in sorted(classes)],
        }
        return ground_truth_table(dataset, images, federated=False, with_masks=False)


@dataclass(frozen=True)
class _Output:
    """The fields of a model's output that image processors read."""

    logits: Any
    pred_boxes: Any


def _logits_and_boxes(output: Sequence[Any]) -> tuple[Any, Any]:
    """[B, Q, C] logits and [B, Q, 4] boxes, which follow each other in every model's output,
    whatever comes before and after."""
    fields = [(one, np.shape(one)) for one in output if hasattr(one, "shape")]
    for (logits, shape), (boxes, of_boxes) in pairwise(fields):
        if len(shape) == len(of_boxes) == 3 and of_boxes == (*shape[:2], 4):
            return logits, boxes
    shapes = ", ".join(str(shape) for _, shape in fields)
    raise InputError(
        f"{_SOURCE}: no logits and boxes among arrays of shapes {shapes or 'none'}; set "
        "eval_do_concat_batches=False or batch_eval_metrics=True in the training arguments"
    )


def _areas(target: Mapping[str, Any], box: Any, pixels: float) -> list[float]:
    """Areas in the original image: the labels', which image processors scale with the image, else
    those of the boxes."""
    if "area" not in target or "size" not in target:
        return [float(one) for one in box[:, 2] * box[:, 3]]
    height, width = np.asarray(to_numpy(target["size"])).tolist()
    scale = pixels / (height * width)
    return [float(one) * scale for one in np.asarray(to_numpy(target["area"])).reshape(-1)]
