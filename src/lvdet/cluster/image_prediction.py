"""Runs a detector over images on Ray Data, and writes files that `evaluate` reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.extras import extra
from lvdet.files.box_formats import BOX_FORMATS, normalized
from lvdet.files.parquet import import_arrow
from lvdet.tables.masks import Masks
from lvdet.writers.image_rows import image_rows

#: Images, [height, width, 3] uint8, to a mapping for each, with "boxes", "scores" and "labels", and
#: optionally "masks".
Detector: TypeAlias = Callable[[Sequence[NDArray[np.uint8]]], Sequence[Mapping[str, Any]]]
FORMATS = tuple(name for name in BOX_FORMATS if not normalized(name))


def predict(
    detector: Callable[[], Detector],
    images: str | os.PathLike[str] | list[str],
    output: str | os.PathLike[str],
    *,
    batch_size: int = 8,
    workers: int = 1,
    num_gpus: float = 1,
    box_format: str = "xyxy",
) -> None:
    """Writes the detections of images as a folder of Parquet files, with one row per image, on the
    cluster that Ray is connected to.

    detector: makes the detector in each worker, once; a class, for instance. The detector takes a
        list of images and returns a mapping for each: "boxes" [n, 4], "scores" [n], "labels" [n],
        the class ids, and optionally "masks" [n, height, width].
    images: paths of image files or folders; rows carry their paths, which `evaluate` looks up among
        the file names of the annotations.
    workers: how many detectors run at a time; num_gpus: of each, 0 for none.
    box_format: of the detector's boxes: "xyxy", "xywh" or "cxcywh", in pixels.

    Fails if the folder exists and is not empty. An interrupted run leaves files in it.
    """
    if box_format not in FORMATS:
        raise InputError(f"box format is {box_format!r}, expected one of {', '.join(FORMATS)}")
    if os.path.isdir(output) and os.listdir(output):
        raise InputError(f"{os.fspath(output)}: the folder is not empty")
    import_arrow("writing Parquet")
    with extra("cluster", "prediction on a cluster"):
        import ray.data
    paths = [os.fspath(one) for one in (images if isinstance(images, list) else [images])]
    given: Any = paths if len(paths) > 1 else paths[0]
    read = ray.data.read_images(given, include_paths=True, mode="RGB")
    rows = read.map_batches(
        _Batches,
        fn_constructor_args=(detector, box_format),
        batch_size=batch_size,
        batch_format="numpy",
        num_gpus=num_gpus,
        concurrency=workers,
    )
    rows.write_parquet(os.fspath(output))


class _Batches:
    """A detector in its worker."""

    def __init__(self, detector: Callable[[], Detector], box_format: str) -> None:
        self._detector, self._box_format = detector(), box_format

    def __call__(self, batch: Mapping[str, Any]) -> Any:
        images, paths = list(batch["image"]), [str(path) for path in batch["path"]]
        found = self._detector(images)
        if len(found) != len(images):
            raise InputError(f"the detector returned {len(found)} results for {len(images)} images")
        rows = [
            image_row(path, one, self._box_format) for path, one in zip(paths, found, strict=True)
        ]
        return table_of(rows)


def image_row(path: str, found: Mapping[str, Any], box_format: str) -> dict[str, Any]:
    """The detections of an image as lists."""
    missing = [name for name in ("boxes", "scores", "labels") if name not in found]
    if missing:
        raise InputError(f"{path}: the detector returned no {missing[0]!r}")
    rows = image_rows(
        *(found["labels"], found["boxes"], found["scores"], found.get("masks")),
        source=path,
        box_format=box_format,
    )
    boxes = rows.box.reshape(-1)
    row = {"image_id": path, "scores": rows.score, "labels": rows.category_id, "boxes": boxes}
    if rows.masks is not None:
        row["segmentations"] = _records(rows.masks)
    return row


def table_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """An Arrow table with the same columns whether or not the images have detections."""
    import pyarrow

    mask = pyarrow.struct([("size", pyarrow.list_(pyarrow.int32())), ("counts", pyarrow.string())])
    types = {
        "image_id": pyarrow.string(),
        "scores": pyarrow.list_(pyarrow.float64()),
        "labels": pyarrow.list_(pyarrow.int64()),
        "boxes": pyarrow.list_(pyarrow.float64()),
        "segmentations": pyarrow.list_(mask),
    }
    names = [name for name in types if any(name in row for row in rows)]
    columns = {
        name: pyarrow.array([row.get(name) for row in rows], type=types[name]) for name in names
    }
    return pyarrow.table(columns)


def _records(masks: Masks) -> list[dict[str, Any]]:
    return [
        {
            "size": [int(masks.height[row]), int(masks.width[row])],
            "counts": masks.row(row).decode("ascii"),
        }
        for row in range(len(masks))
    ]
