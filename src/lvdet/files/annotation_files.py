"""LVIS and COCO annotation files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.files.opening import CHUNK, open_plain, run_reader, watched
from lvdet.files.progress import Progress, Update, track
from lvdet.files.remote_path import input_path
from lvdet.files.writing import write_whole
from lvdet.tables.categories import Categories
from lvdet.tables.ground_truth import GroundTruth, ImageLists, Images
from lvdet.tables.masks import POLYGONS, Masks
from lvdet.tables.problems import ground_truth_problems, rows_of, unlisted
from lvdet.tables.values import Problem, require
from lvdet.threads import thread_count

#: What a record of each list is called, and the list that an id leads to.
_RECORDS = {"annotations": "annotation", "images": "image", "categories": "category"}
_LISTS = {"image_id": "images", "category_id": "categories"}
#: By bit of what the reader says is there. Only masks need the size.
_IMAGE_KEYS = ("neg_category_ids", "not_exhaustive_category_ids", "height", "width")


def read_ground_truth(
    path: str | os.PathLike[str],
    *,
    masks: bool = True,
    progress: Progress | None = None,
) -> GroundTruth:
    """Reads an LVIS (v1, v0.5) or COCO annotation file, plain or gzipped.

    A file counts as LVIS if an image has `neg_category_ids` or `not_exhaustive_category_ids`. With
    masks=False segmentations are skipped; boxes can then be evaluated, but not masks.
    """
    with track(progress, "reading annotations") as update:
        gt, problems = load_ground_truth(path, masks=masks, update=update)
    require(iter(problems))
    assert gt is not None
    return gt


def load_ground_truth(
    path: str | os.PathLike[str],
    *,
    masks: bool = True,
    annotated: bool = True,
    update: Update | None = None,
) -> tuple[GroundTruth | None, list[Problem]]:
    """The table, and everything wrong with the file; no table if the file is unusable.

    annotated: refuse a file without a list of annotations, such as those of test images
    """
    found_at = input_path(path)
    source = str(found_at)
    with open_plain(found_at) as file:
        size = os.fstat(file.fileno()).st_size
        columns = run_reader(
            lambda control: _native.read_annotations_json(
                file.fileno(), masks, thread_count(), CHUNK, watched(file, control)
            ),
            size,
            update,
        )
    if update is not None:
        update(size, size)
    problems = [
        Problem(source, what.partition(": ")[2], row, byte, _RECORDS[what.partition(": ")[0]])
        for row, byte, what in columns["problems"]
    ]
    problems += unlisted(source, columns)
    if columns["failure"] is not None:
        what, byte, row = columns["failure"]
        problems.append(Problem(source, what, row if row >= 0 else None, byte))
        return None, problems
    missing = False
    for name, present in zip(("images", "annotations", "categories"), columns["has"], strict=True):
        if not present and (annotated or name != "annotations"):
            problems.append(Problem(source, f"no {name!r} list: not an annotation file"))
            missing = True
    if missing:
        return None, problems
    gt, found = _build(source, columns, problems)
    return gt, problems + found


def _build(
    source: str, columns: dict[str, Any], before: list[Problem]
) -> tuple[GroundTruth, list[Problem]]:
    """The table of all usable annotations, and the problems, appended to `before`."""
    problems: list[Problem] = []
    image_ids, image_order = _ascending(columns["images.id"], source, "image", problems)
    category_ids, category_order = _ascending(
        columns["categories.id"], source, "category", problems
    )
    reported = {
        table: {p.row for p in before if p.table == table and p.row is not None}
        for table in _RECORDS.values()
    }
    image = rows_of(image_ids, columns["image_id"])
    category = rows_of(category_ids, columns["category_id"])
    usable = (image >= 0) & (category >= 0)
    usable[np.array(sorted(reported["annotation"]), dtype=np.int64)] = False
    for row in np.flatnonzero(~usable):
        if int(row) in reported["annotation"]:
            continue
        for name, rows in (("image_id", image), ("category_id", category)):
            if rows[row] < 0:
                value = columns[name][row]
                what = f"{name} {value} is not in the file's list of {_LISTS[name]}"
                problems.append(Problem(source, what, int(row), table="annotation"))
    present = columns["images.present"]
    federated = bool((present & 3).any())
    with_masks = columns["masks"] is not None and columns["masks"]["kind"].any()
    needed = (3 if federated else 0) | (12 if federated or with_masks else 0)
    for row in np.flatnonzero((present & needed) != needed):
        missing = [
            name for bit, name in enumerate(_IMAGE_KEYS) if needed & ~int(present[row]) & 1 << bit
        ]
        if int(row) not in reported["image"]:
            what = f"{missing[0]} is missing"
            problems.append(Problem(source, what, int(row), table="image"))

    height = columns["images.height"][image_order]
    width = columns["images.width"][image_order]
    names, frequency = columns["categories.names"], columns["categories.frequency"]
    kept = np.flatnonzero(usable)
    masks = _masks(columns["masks"], image, height, width, usable)
    if len(kept) < len(usable):
        image, category = image[kept], category[kept]
        masks = None if masks is None else masks[kept]
        for name in ("id", "box", "area", "ignore", "crowd"):
            columns[name] = columns[name][kept]
    gt = GroundTruth(
        images=Images(
            image_ids,
            height,
            width,
            tuple(columns["images.file_names"][i] for i in image_order),
            tuple(columns["images.addresses"][i] for i in image_order),
        ),
        categories=Categories(
            category_ids,
            tuple(names[i] for i in category_order),
            np.array([frequency[i] for i in category_order], dtype=np.str_),
        ),
        id=columns["id"],
        image=image,
        category=category,
        box=columns["box"],
        area=columns["area"],
        ignore=columns["ignore"].astype(bool),
        crowd=columns["crowd"].astype(bool),
        masks=masks,
        negative=_lists(columns, "negative", image_order, category_ids) if federated else None,
        not_exhaustive=(
            _lists(columns, "not_exhaustive", image_order, category_ids) if federated else None
        ),
        source=source,
    )
    return gt, problems + list(ground_truth_problems(gt, kept))


def _ascending(
    ids: NDArray[np.int64], source: str, table: str, problems: list[Problem]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids in ascending order, with that order; reports duplicate ids."""
    order = np.argsort(ids, kind="stable")
    ascending = ids[order]
    repeated = np.zeros(len(ids), dtype=bool)
    repeated[1:] = ascending[1:] == ascending[:-1]
    for place in np.flatnonzero(repeated):
        what = f"{table} id {ascending[place]} occurs more than once"
        problems.append(Problem(source, what, int(order[place]), table=table))
    return ascending[~repeated], order[~repeated]


def _masks(
    columns: dict[str, Any] | None,
    image: NDArray[np.int32],
    height: NDArray[np.int32],
    width: NDArray[np.int32],
    usable: NDArray[np.bool_],
) -> Masks | None:
    """The masks; polygons get the size of their image."""
    if columns is None:
        return None
    masks = Masks(**columns)
    if not masks.kind.any():
        return None
    polygons = (masks.kind == POLYGONS) & usable
    masks.height[polygons] = height[image[polygons]]
    masks.width[polygons] = width[image[polygons]]
    return masks


def _lists(
    columns: dict[str, Any],
    name: str,
    image_order: NDArray[np.int64],
    category_ids: NDArray[np.int64],
) -> ImageLists:
    """The lists of all images, in the images' new order. Unknown class ids are left out, because no
    detection of theirs can count."""
    ends = columns[f"images.{name}_end"]
    image = np.full(len(ends), -1, dtype=np.int64)
    image[image_order] = np.arange(len(image_order))
    image = np.repeat(image, np.diff(ends, prepend=0))
    category = rows_of(category_ids, columns[f"images.{name}"])
    known = (category >= 0) & (image >= 0)
    order = np.argsort(image[known], kind="stable")
    counts = np.bincount(image[known], minlength=len(image_order))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return ImageLists(offsets, np.ascontiguousarray(category[known][order]))


def write_ground_truth(gt: GroundTruth, path: str | os.PathLike[str]) -> None:
    """Writes the table as an LVIS or COCO annotation file."""
    import json

    images: list[dict[str, Any]] = []
    for row in range(len(gt.images)):
        image: dict[str, Any] = {
            "id": int(gt.images.ids[row]),
            "height": int(gt.images.height[row]),
            "width": int(gt.images.width[row]),
        }
        if gt.images.file_names[row]:
            image["file_name"] = gt.images.file_names[row]
        for key, lists in (
            ("neg_category_ids", gt.negative),
            ("not_exhaustive_category_ids", gt.not_exhaustive),
        ):
            if lists is not None:
                rows = lists.category[lists.offsets[row] : lists.offsets[row + 1]]
                image[key] = gt.categories.ids[rows].tolist()
        images.append(image)
    categories = [
        {"id": int(gt.categories.ids[row]), "name": gt.categories.names[row]}
        | ({"frequency": str(gt.categories.frequency[row])} if gt.categories.frequency[row] else {})
        for row in range(len(gt.categories))
    ]
    segmentations = None if gt.masks is None else _native.segmentations_json(gt.masks.columns)
    image_ids = gt.images.ids[gt.image].tolist()
    category_ids = gt.categories.ids[gt.category].tolist()
    ids, boxes, areas = gt.id.tolist(), gt.box.tolist(), gt.area.tolist()
    with write_whole(path) as file:
        head = f'{{"images": {json.dumps(images)}, "categories": {json.dumps(categories)}, '
        file.write(head.encode() + b'"annotations": [')
        for row in range(len(gt)):
            text = (
                f'{{"id": {ids[row]}, "image_id": {image_ids[row]}, '
                f'"category_id": {category_ids[row]}, "bbox": {boxes[row]}, "area": {areas[row]}'
            )
            if gt.ignore[row]:
                text += ', "ignore": 1'
            if gt.crowd[row] or not gt.federated:
                text += f', "iscrowd": {int(gt.crowd[row])}'
            if segmentations is not None and segmentations[row] != "null":
                text += f', "segmentation": {segmentations[row]}'
            file.write((",\n" if row else "\n").encode() + text.encode() + b"}")
        file.write(b"\n]}\n")
