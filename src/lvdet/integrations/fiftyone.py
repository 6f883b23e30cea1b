"""To and from FiftyOne's samples: boxes, and AP per class. Nothing here needs its database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np

from lvdet.errors import InputError
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.summary import defined
from lvdet.files.known_images import KnownImages
from lvdet.integrations.dataset_tables import ground_truth_table
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import rows_of

__all__ = [
    "detections_from_fiftyone",
    "detections_to_fiftyone",
    "ground_truth_from_fiftyone",
    "metrics_to_fiftyone",
]

_SOURCE = "fiftyone"


def ground_truth_from_fiftyone(
    samples: Iterable[Any], field: str, classes: Sequence[str] | None = None
) -> GroundTruth:
    """A field of samples as annotations, by COCO's rules. Images and classes are numbered from 1:
    images in the order of the samples, classes in the given order or by name.

    samples: a dataset, a view, or samples as dicts, such as those of an exported `samples.json`;
        their metadata must have the image sizes
    """
    images, rows = [], []
    for number, sample in enumerate(map(_plain, samples), start=1):
        path, (width, height) = sample["filepath"], _size(sample)
        images.append({"id": number, "file_name": path, "width": width, "height": height})
        rows += [(number, one, _pixels(one, width, height, path)) for one in _labels(sample, field)]
    names = sorted({one["label"] for _, one, _ in rows}) if classes is None else [*classes]
    ids = {name: number for number, name in enumerate(names, start=1)}
    annotations = [
        {
            "id": number,
            "image_id": image,
            "category_id": _known(ids, one["label"]),
            "bbox": box,
            "area": one.get("area", box[2] * box[3]),
            "iscrowd": one.get("iscrowd", 0),
        }
        for number, (image, one, box) in enumerate(rows, start=1)
    ]
    dataset = {
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for name, number in ids.items()],
    }
    return ground_truth_table(dataset, images, federated=False, with_masks=False)


def detections_from_fiftyone(samples: Iterable[Any], field: str, gt: GroundTruth) -> Detections:
    """A field of samples as detections, for annotations that know the file names and the class
    names."""
    ids = dict(zip(gt.categories.names, gt.categories.ids.tolist(), strict=True))
    gt = _with_names(gt)
    found, texts = [], []
    for sample in map(_plain, samples):
        texts.append(sample["filepath"])
        found.append(_labels(sample, field))
    image_ids, problems = KnownImages(gt).find(texts)
    for place, what in problems:
        raise InputError(f"{_SOURCE}, {texts[place]}: {what}")
    rows = rows_of(gt.images.ids, image_ids)
    listed = [
        (
            int(image_ids[place]),
            _known(ids, one["label"]),
            _score(one, texts[place]),
            _pixels(one, int(gt.images.width[row]), int(gt.images.height[row]), texts[place]),
        )
        for place, row in enumerate(rows.tolist())
        for one in found[place]
    ]
    images, category_ids, scores, boxes = zip(*listed, strict=True) if listed else ((), (), (), ())
    return Detections.from_arrays(images, category_ids, scores, boxes, source=_SOURCE)


def detections_to_fiftyone(detections: Detections, gt: GroundTruth) -> dict[str, dict[str, Any]]:
    """The `Detections` of each image, by file name without folders, as
    `fiftyone.Detections.from_dict` takes them; without masks."""
    names = [PurePath(name).name for name in _with_names(gt).images.file_names]
    if len({*names}) < len(names):
        raise InputError(f"{_SOURCE}: {gt.source} has images without a file name of their own")
    image_rows = rows_of(gt.images.ids, detections.image_ids)
    classes = rows_of(gt.categories.ids, detections.category_ids)
    for name, rows, ids in (
        ("image", image_rows, detections.image_ids),
        ("class", classes, detections.category_ids),
    ):
        if (rows < 0).any():
            raise InputError(f"{_SOURCE}: {gt.source} has no {name} {ids[rows < 0][0]}")
    image, label = image_rows[detections.image], classes[detections.category]
    size = np.stack([gt.images.width[image], gt.images.height[image]], axis=1)
    box = detections.box / np.tile(size, 2)
    out: dict[str, dict[str, Any]] = {
        name: {"_cls": "Detections", "detections": []} for name in names
    }
    for row in range(len(detections)):
        out[names[image[row]]]["detections"].append(
            {
                "_cls": "Detection",
                "label": gt.categories.names[label[row]],
                "bounding_box": box[row].tolist(),
                "confidence": float(detections.score[row]),
            }
        )
    return out


def metrics_to_fiftyone(result: Evaluation) -> dict[str, Any]:
    """The metrics of each protocol, and AP per class by name, as plain values for `dataset.info`;
    None where undefined."""
    table = result.per_class
    names = [str(name) for name in table["name"]]
    out = {}
    for protocol, metrics in result.items():
        out[protocol] = metrics.to_dict()
        if f"{protocol}.AP" in table:
            values = [float(one) for one in table[f"{protocol}.AP"]]
            out[protocol]["AP_per_class"] = defined(dict(zip(names, values, strict=True)))
    return out


def _with_names(gt: GroundTruth) -> GroundTruth:
    """The annotations with file names as FiftyOne has them. LVIS v1 names files by address, in
    folders that FiftyOne does not keep."""
    both = zip(gt.images.file_names, gt.images.addresses or ("",) * len(gt.images), strict=True)
    names = tuple(PurePath(one).name if one == address else one for one, address in both)
    return replace(gt, images=replace(gt.images, file_names=names))


def _plain(sample: Any) -> Mapping[str, Any]:
    """A sample as a dict."""
    found = sample if isinstance(sample, Mapping) else sample.to_dict()
    if "filepath" not in found:
        raise InputError(f"{_SOURCE}: a sample has no filepath, found {sorted(found)}")
    return found


def _labels(sample: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    """The detections in a field, which is empty where a sample has none."""
    if field not in sample:
        raise InputError(f"{_SOURCE}, {sample['filepath']}: no field {field!r}")
    value = sample[field]
    if value is None:
        return []
    if not isinstance(value, Mapping) or value.get("_cls") != "Detections":
        raise InputError(
            f"{_SOURCE}, {sample['filepath']}: field {field!r} has no Detections: {value!r:.60}"
        )
    return list(value["detections"])


def _size(sample: Mapping[str, Any]) -> tuple[int, int]:
    metadata = sample.get("metadata") or {}
    if metadata.get("width") is None or metadata.get("height") is None:
        raise InputError(
            f"{_SOURCE}, {sample['filepath']}: metadata has no width and height; run "
            "dataset.compute_metadata()"
        )
    return int(metadata["width"]), int(metadata["height"])


def _pixels(one: Mapping[str, Any], width: int, height: int, path: str) -> list[float]:
    """The box of a detection in pixels."""
    box = one.get("bounding_box")
    if not isinstance(box, Sequence) or len(box) != 4:
        raise InputError(f"{_SOURCE}, {path}: bounding_box is {box!r}, expected [x, y, w, h]")
    x, y, w, h = box
    return [x * width, y * height, w * width, h * height]


def _score(one: Mapping[str, Any], path: str) -> float:
    if one.get("confidence") is None:
        raise InputError(f"{_SOURCE}, {path}: a detection has no confidence")
    return float(one["confidence"])


def _known(ids: Mapping[str, int], label: str) -> int:
    if label not in ids:
        raise InputError(f"{_SOURCE}: no class is named {label!r}")
    return ids[label]
