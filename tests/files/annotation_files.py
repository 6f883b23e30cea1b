"""Annotation files of each format, and what a table must hold of them."""

from __future__ import annotations

import re
from typing import Any

import lvdet
from files.record_files import Json, assert_mask, bits

IMAGES: list[Json] = [
    {"id": 30, "height": 40, "width": 60},
    {"id": 4, "height": 50, "width": 20},
    {"id": 17, "height": 8, "width": 9},
]
CATEGORIES: list[Json] = [
    {"id": 5, "name": "café"},
    {"id": 2, "name": 'a "b" \\ c/d'},
    {"id": 90, "name": "猫\t𝄞"},
]
ANNOTATIONS: list[Json] = [
    {
        "id": 11,
        "image_id": 4,
        "category_id": 90,
        "bbox": [1.5, 2, 10.25, 4],
        "area": 12.5,
        "segmentation": [[1.5, 2.0, 11.75, 2.0, 11.75, 6.0]],
    },
    {
        "id": 3,
        "image_id": 30,
        "category_id": 2,
        "bbox": [0, 0, 3, 40],
        "area": 120,
        "segmentation": {"size": [40, 60], "counts": [0, 120, 2280]},
    },
    {
        "id": 8,
        "image_id": 4,
        "category_id": 2,
        "bbox": [0.1, 0.2, 0.3, 0.4],
        "area": 0.12,
        "segmentation": [[0.0, 0.0, 1.0, 0.0, 1.0, 1.0], [3.0, 3.0, 4.0, 3.0, 4.0, 4.0]],
    },
]
FREQUENCIES = "frc"
LISTS = [([2, 90], [5]), ([], []), ([90, 5, 2], [2, 5])]


def coco() -> Json:
    """A COCO file, as the 2017 ones are laid out."""
    return {
        "info": {"description": "COCO 2017", "contributor": "C", "version": "1.0"},
        "licenses": [{"url": "http://…", "id": 1, "name": "BY"}, {"id": 2}],
        "images": [
            image
            | {
                "license": 1,
                "file_name": f"{image['id']:012}.jpg",
                "coco_url": f"http://images.cocodataset.org/val2017/{image['id']:012}.jpg",
                "date_captured": "2013-11-14 17:02:52",
            }
            for image in IMAGES
        ],
        "annotations": [
            row | {"iscrowd": int(place == 1)} for place, row in enumerate(ANNOTATIONS)
        ],
        "categories": [category | {"supercategory": "thing"} for category in CATEGORIES],
    }


def lvis() -> Json:
    """An LVIS v1 file; there is no file_name, only an address."""
    return {
        "info": {"year": 2020},
        "annotations": [dict(row) for row in ANNOTATIONS],
        "categories": [
            category
            | {
                "frequency": frequency,
                "synset": "cat.n.01",
                "synonyms": ["a", "b"],
                "def": "a },{ thing",
                "image_count": 3,
                "instance_count": 9,
            }
            for category, frequency in zip(CATEGORIES, FREQUENCIES, strict=True)
        ],
        "images": [
            image
            | {
                "coco_url": f"http://images.cocodataset.org/val2017/{image['id']:012}.jpg",
                "flickr_url": "http://farm.staticflickr.com/1.jpg",
                "neg_category_ids": list(negative),
                "not_exhaustive_category_ids": list(open_),
            }
            for image, (negative, open_) in zip(IMAGES, LISTS, strict=True)
        ],
        "licenses": [],
    }


def lvis_v05() -> Json:
    """An LVIS v0.5 file, which has names of files."""
    content = lvis()
    for image in content["images"]:
        del image["coco_url"]
        image["file_name"] = f"COCO_val2014_{image['id']:012}.jpg"
    return content


def file_name(image: Json) -> str:
    """The name, or the last two parts of the address."""
    if "file_name" in image:
        return str(image["file_name"])
    return "/".join(image.get("coco_url", "").split("/")[-2:])


def readable(name: str) -> str:
    """The name; what is left of a pair of surrogates is no character."""
    return re.sub("[\ud800-\udfff]", "\ufffd", name)


def assert_holds_truth(gt: lvdet.GroundTruth, content: Json, *, masks: bool = True) -> None:
    """The table is the file; images and classes stand by rising id."""
    images = sorted(content["images"], key=lambda image: image["id"])
    categories = sorted(content["categories"], key=lambda category: category["id"])
    annotations = content["annotations"]
    assert gt.images.ids.tolist() == [image["id"] for image in images]
    assert gt.images.height.tolist() == [image.get("height", 0) for image in images]
    assert gt.images.width.tolist() == [image.get("width", 0) for image in images]
    assert gt.images.file_names == tuple(readable(file_name(image)) for image in images)
    assert gt.categories.ids.tolist() == [category["id"] for category in categories]
    names = tuple(readable(category.get("name", "")) for category in categories)
    assert gt.categories.names == names
    assert gt.categories.frequency.tolist() == [row.get("frequency", "") for row in categories]
    assert gt.id.tolist() == [row["id"] for row in annotations]
    assert gt.images.ids[gt.image].tolist() == [row["image_id"] for row in annotations]
    assert gt.categories.ids[gt.category].tolist() == [row["category_id"] for row in annotations]
    assert bits(gt.box) == bits([row["bbox"] for row in annotations])
    assert bits(gt.area) == bits([row["area"] for row in annotations])
    assert gt.crowd.tolist() == [bool(row.get("iscrowd", 0)) for row in annotations]
    assert gt.ignore.tolist() == [bool(row.get("ignore", 0)) for row in annotations]
    federated = any("neg_category_ids" in image for image in images)
    assert gt.federated == federated
    known = {category["id"] for category in categories}
    for lists, key in (
        (gt.negative, "neg_category_ids"),
        (gt.not_exhaustive, "not_exhaustive_category_ids"),
    ):
        assert (lists is not None) == federated
        for row, image in enumerate(images if federated else []):
            here = lists.category[lists.offsets[row] : lists.offsets[row + 1]]
            assert gt.categories.ids[here].tolist() == [k for k in image[key] if k in known]
    has_masks = any(row.get("segmentation") is not None for row in annotations)
    assert (gt.masks is not None) == (masks and has_masks)
    if gt.masks is None:
        return
    assert len(gt.masks) == len(annotations)
    sizes = {image["id"]: (image["height"], image["width"]) for image in images}
    for row, annotation in enumerate(annotations):
        segmentation = annotation.get("segmentation")
        assert_mask(gt.masks, row, segmentation)
        if isinstance(segmentation, list):
            size = gt.masks.height[row], gt.masks.width[row]
            assert size == sizes[annotation["image_id"]]


def assert_same_truth(a: lvdet.GroundTruth, b: lvdet.GroundTruth) -> None:
    """All columns of both tables are equal."""
    assert plain(a) == plain(b)


def plain(gt: lvdet.GroundTruth) -> dict[str, Any]:
    arrays = ("id", "image", "category", "ignore", "crowd")
    values: dict[str, Any] = {name: getattr(gt, name).tolist() for name in arrays}
    values |= {"box": bits(gt.box), "area": bits(gt.area), "names": gt.categories.names}
    values |= {"category_ids": gt.categories.ids.tolist(), "files": gt.images.file_names}
    values |= {name: getattr(gt.images, name).tolist() for name in ("ids", "height", "width")}
    values["frequency"] = gt.categories.frequency.tolist()
    for name in ("negative", "not_exhaustive"):
        lists = getattr(gt, name)
        values[name] = lists and (lists.offsets.tolist(), lists.category.tolist())
    values["masks"] = gt.masks and [column.tolist() for column in gt.masks.columns]
    return values
