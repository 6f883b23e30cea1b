"""Object detection with transformers: `compute_metrics` for its Trainer, and its results as a
table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.load_pair import Annotations
from lvdet.files.annotation_files import read_ground_truth
from lvdet.files.box_formats import from_format
from lvdet.integrations.dataset_tables import ground_truth_table
from lvdet.integrations.image_collection import ImageCollection
from lvdet.partials.detection_metric import DetectionMetric
from lvdet.tables.description import counted
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import rows_of
from lvdet.writers.arguments import to_numpy
from lvdet.writers.image_rows import ClassIds, image_number, labels_to_ids

__all__ = [
    "TrainerMetrics",
    "detections_from_transformers",
    "ground_truth_from_transformers",
]

_SOURCE = "transformers"


def detections_from_transformers(
    results: Sequence[Mapping[str, Any]],
    image_ids: Iterable[Any],
    *,
    class_ids: ClassIds = None,
) -> Detections:
    """What `post_process_object_detection` returned for images, as a table: dicts of `scores`,
    `labels` and `boxes` (two corners in pixels, so pass it `target_sizes`).

    class_ids: the class id of each label; by default labels are class ids
    """
    rows = ImageCollection(_SOURCE, class_ids)
    ids = list(image_ids)
    if len(ids) != len(results):
        raise InputError(f"{_SOURCE}: {len(results)} results for {len(ids)} image ids")
    for image_id, one in zip(ids, results, strict=True):
        rows.add(image_id, one["boxes"], one["scores"], one["labels"])
    return rows.detections()


def ground_truth_from_transformers(
    labels: Iterable[Mapping[str, Any]], *, class_ids: ClassIds = None
) -> GroundTruth:
    """The labels that an image processor made of annotations, as a table by COCO's rules: of each
    image a dict of `image_id`, `orig_size`, `class_labels` and `boxes`, with `area`, `size` and
    `iscrowd` where it has them.

    Take them from the evaluation set. Those that the Trainer passes on can lack objects: it
    shortens the tensors of the last batch to the number of its images.

    class_ids: the class id of each label; by default labels are class ids
    """
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for target in labels:
        image = image_number(target["image_id"], _SOURCE)
        height, width = _array(target["orig_size"]).tolist()
        images.append({"id": image, "height": height, "width": width})
        box = _array(target["boxes"]).astype(np.float64).reshape(-1, 4)
        box = from_format("cxcywhn", box, np.tile([float(width), float(height)], (len(box), 1)))
        crowd = _array(target.get("iscrowd", np.zeros(len(box)))).tolist()
        areas = _areas(target, box, height * width)
        ids = labels_to_ids(target["class_labels"], class_ids, f"{_SOURCE}, image {image}")
        if len(ids) != len(box):
            raise InputError(
                f"{_SOURCE}, image {image}: {counted(len(box), 'box', 'boxes')} for "
                f"{counted(len(ids), 'label')}"
            )
        for place, category_id in enumerate(ids.tolist()):
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image,
                    "category_id": category_id,
                    "bbox": box[place].tolist(),
                    "area": areas[place],
                    "iscrowd": crowd[place],
                }
            )
    listed = class_ids.values() if isinstance(class_ids, Mapping) else class_ids
    classes = {one["category_id"] for one in annotations}
    classes |= set() if listed is None else {int(one) for one in listed}
    dataset = {
        "annotations": annotations,
        "categories": [{"id": one} for one in sorted(classes)],
    }
    images.sort(key=lambda one: one["id"])
    return ground_truth_table(dataset, images, federated=False, with_masks=False)


class TrainerMetrics:
    """`compute_metrics` for `transformers.Trainer`.

        Trainer(…, compute_metrics=TrainerMetrics("lvis_v1_val.json", image_processor))

    The training arguments need `eval_do_concat_batches=False`, or `batch_eval_metrics=True`, which
    keeps only what the budgets need in memory. Names in the log are such as eval_fixed_APr;
    undefined metrics are left out. Each image counts once. `result` is the latest evaluation.

    gt:        the annotations, whose image ids are the labels'; image sizes are read from them
    image_processor: its `post_process_object_detection` makes detections of the model's output
    threshold: minimum score (exclusive); AP needs all detections, so the default is 0
    class_ids: the class id of each label; by default labels are class ids
    options:   those of `lvdet.DetectionMetric`, such as dets_per_class
    """

    def __init__(
        self,
        gt: Annotations,
        image_processor: Any,
        *,
        threshold: float = 0.0,
        class_ids: ClassIds = None,
        **options: Any,
    ) -> None:
        self.result: Evaluation | None = None
        self._gt = gt if isinstance(gt, GroundTruth) else read_ground_truth(gt, masks=False)
        self._metric = DetectionMetric(self._gt, **options)
        self._post_process = image_processor.post_process_object_detection
        self._threshold = threshold
        self._class_ids = class_ids

    def __call__(self, evaluation: Any, compute_result: bool = True) -> dict[str, float]:
        """Takes an `EvalPrediction`, of one batch or of all, and returns the metrics unless more
        batches follow."""
        labels = evaluation.label_ids
        one_batch = len(labels) > 0 and isinstance(labels[0], Mapping)
        outputs = [evaluation.predictions] if one_batch else evaluation.predictions
        for output, batch in zip(outputs, [labels] if one_batch else labels, strict=True):
            self._add(output, [image_number(one["image_id"], _SOURCE) for one in batch])
        if not compute_result:
            return {}
        self.result = self._metric.compute()
        self._metric.reset()
        return {
            f"{protocol}_{name}": float(value)
            for protocol, metrics in self.result.items()
            for name, value in metrics.items()
            if not np.isnan(value)
        }

    def _add(self, output: Sequence[Any], image_ids: Sequence[int]) -> None:
        """Adds the detections of a batch."""
        import torch

        logits, boxes = _logits_and_boxes(output)
        images = self._gt.images
        rows = rows_of(images.ids, np.array(image_ids, dtype=np.int64))
        for row, image in zip(rows.tolist(), image_ids, strict=True):
            if row < 0:
                raise InputError(f"{_SOURCE}: {self._gt.source} has no image {image}")
            if images.height[row] <= 0 or images.width[row] <= 0:
                raise InputError(f"{_SOURCE}: image {image} has no size in {self._gt.source}")
        sizes = np.stack([images.height[rows], images.width[rows]], axis=1)
        results = self._post_process(
            _Output(torch.as_tensor(logits), torch.as_tensor(boxes)),
            threshold=self._threshold,
            target_sizes=torch.as_tensor(sizes),
        )
        predictions = []
        for image, one in zip(image_ids, results, strict=True):
            ids = labels_to_ids(one["labels"], self._class_ids, f"{_SOURCE}, image {image}")
            predictions.append({**one, "labels": ids})
        self._metric.update(predictions, [{"image_id": image} for image in image_ids])


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
    """Areas in the original image: the labels', which image processors scale with the image;
    without them, those of the boxes."""
    if "area" not in target or "size" not in target:
        return [float(one) for one in box[:, 2] * box[:, 3]]
    height, width = _array(target["size"]).tolist()
    return [float(one) * pixels / (height * width) for one in _array(target["area"]).reshape(-1)]


def _array(values: Any) -> NDArray[Any]:
    return np.asarray(to_numpy(values))
