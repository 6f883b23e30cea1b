"""Evaluates annotations given as dicts with lvdet's own protocols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.protocols import evaluate
from lvdet.integrations.annotation_columns import Annotation, boxes, column, image_sizes, masks
from lvdet.tables.categories import Categories
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth, ImageLists, Images
from lvdet.tables.problems import ground_truth_problems, rows_of
from lvdet.tables.values import require

Record = Mapping[str, Any]


def evaluate_dataset(
    dataset: Record,
    results: Sequence[Annotation],
    *,
    image_ids: Iterable[int],
    class_ids: Iterable[int],
    federated: bool,
    iou: str,
    exact_lvis: bool = True,
    **options: Any,
) -> Evaluation:
    """AP-Old, AP-Fixed and AP-Pool over some of a dataset's images and classes. By default the
    quirks of the reference tools are reproduced, so that AP-Old equals theirs."""
    known = set(image_ids)
    results = [one for one in results if one["image_id"] in known]
    images = sorted(
        {one["id"]: one for one in dataset["images"] if one["id"] in known}.values(),
        key=lambda one: one["id"],
    )
    if set(class_ids) != {one["id"] for one in dataset["categories"]}:
        options.setdefault("classes", [int(one) for one in class_ids])
    gt = ground_truth_table(dataset, images, federated=federated, with_masks=iou != "bbox")
    return evaluate(gt, _detections(results, iou), iou=iou, exact_lvis=exact_lvis, **options)


def _detections(results: Sequence[Annotation], iou: str) -> Detections:
    """The results as a table. Boxes computed from masks are dropped, so that the area is the
    mask's."""
    source, with_masks = "detections", iou != "bbox"
    boxed = bool(results) and all("bbox" in one for one in results)
    if boxed and with_masks:
        boxed = all(
            one["area"] == one["bbox"][2] * one["bbox"][3] for one in results if "area" in one
        )
    return Detections.from_arrays(
        [one["image_id"] for one in results],
        [one["category_id"] for one in results],
        [one["score"] for one in results],
        boxes(results, source) if boxed or not with_masks else None,
        masks([_outlined(one) for one in results], source) if with_masks else None,
        source,
    )


def _outlined(result: Annotation) -> Annotation:
    """A result with a mask: its box if it has its own."""
    if "segmentation" in result:
        return result
    x, y, w, h = result["bbox"]
    return {"segmentation": [[x, y, x, y + h, x + w, y + h, x + w, y]]}


def ground_truth_table(
    dataset: Record, images: Sequence[Record], *, federated: bool, with_masks: bool
) -> GroundTruth:
    """The annotations of images, given by ascending id, as a table."""
    source = "ground truth"
    categories = sorted(
        {one["id"]: one for one in dataset["categories"]}.values(), key=lambda one: one["id"]
    )
    image_ids = np.array([one["id"] for one in images], dtype=np.int64)
    category_ids = np.array([one["id"] for one in categories], dtype=np.int64)
    known = set(image_ids.tolist())
    rows = [one for one in dataset["annotations"] if one["image_id"] in known]
    image = rows_of(image_ids, np.array([one["image_id"] for one in rows], dtype=np.int64))
    category = rows_of(category_ids, np.array([one["category_id"] for one in rows], dtype=np.int64))
    found = masks(rows, source) if with_masks else None
    height, width = image_sizes(images, [] if found is None else [(found, image)])
    gt = GroundTruth(
        images=Images(
            image_ids, height, width, tuple(str(one.get("file_name", "")) for one in images)
        ),
        categories=Categories(
            category_ids,
            tuple(str(one.get("name", one["id"])) for one in categories),
            np.array([one.get("frequency", "") for one in categories], dtype=np.str_),
        ),
        id=np.array([one["id"] for one in rows], dtype=np.int64),
        image=image,
        category=category,
        box=boxes(rows, source),
        area=column(rows, "area", source),
        ignore=np.array([bool(one.get("ignore", 0)) for one in rows], dtype=bool),
        crowd=np.array([bool(one.get("iscrowd", 0)) for one in rows], dtype=bool),
        masks=found,
        negative=_lists(images, "neg_category_ids", category_ids) if federated else None,
        not_exhaustive=(
            _lists(images, "not_exhaustive_category_ids", category_ids) if federated else None
        ),
        source=source,
    )
    require(ground_truth_problems(gt))
    return gt


def _lists(images: Sequence[Record], name: str, category_ids: NDArray[np.int64]) -> ImageLists:
    """The classes listed for each image."""
    known = set(category_ids.tolist())
    listed = [[one for one in image[name] if one in known] for image in images]
    ids = np.array([one for classes in listed for one in classes], dtype=np.int64)
    offsets = np.cumsum([0, *(len(classes) for classes in listed)], dtype=np.int64)
    return ImageLists(offsets, rows_of(category_ids, ids))
