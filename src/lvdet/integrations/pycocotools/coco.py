"""COCO: annotations as dicts, with pycocotools's names."""

from __future__ import annotations

import copy
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlretrieve

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError, LvdetError
from lvdet.integrations.pycocotools import mask as mask_functions

__all__ = ["COCO"]

Record = dict[str, Any]
KEYPOINTS = "keypoints are not evaluated by lvdet; use pycocotools for them"


class COCO:
    """An annotation file, or results beside one. `dataset` is live: change it, call
    `createIndex`, and every method sees what it holds."""

    def __init__(self, annotation_file: str | os.PathLike[str] | None = None) -> None:
        self.dataset: Record = {}
        self.anns: dict[Any, Record] = {}
        self.cats: dict[Any, Record] = {}
        self.imgs: dict[Any, Record] = {}
        self.imgToAnns: defaultdict[Any, list[Record]] = defaultdict(list)
        self.catToImgs: defaultdict[Any, list[Any]] = defaultdict(list)
        if annotation_file is None:
            return
        print("loading annotations into memory...")
        start = time.time()
        dataset = json.loads(Path(annotation_file).read_bytes())
        if not isinstance(dataset, dict):
            raise InputError(f"{annotation_file}: not an annotation file: expected a JSON object")
        print(f"Done (t={time.time() - start:0.2f}s)")
        self.dataset = dataset
        self.createIndex()

    def createIndex(self) -> None:
        """Builds `anns`, `cats`, `imgs`, `imgToAnns` and `catToImgs` from the dataset."""
        print("creating index...")
        annotations = self.dataset.get("annotations", [])
        self.anns = {one["id"]: one for one in annotations}
        self.imgs = {one["id"]: one for one in self.dataset.get("images", [])}
        self.cats = {one["id"]: one for one in self.dataset.get("categories", [])}
        self.imgToAnns, self.catToImgs = defaultdict(list), defaultdict(list)
        for one in annotations:
            self.imgToAnns[one["image_id"]].append(one)
            if "categories" in self.dataset:
                self.catToImgs[one["category_id"]].append(one["image_id"])
        print("index created!")

    def info(self) -> None:
        """Prints the file's `info` section."""
        for key, value in self.dataset["info"].items():
            print(f"{key}: {value}")

    def getAnnIds(
        self,
        imgIds: Any = (),
        catIds: Any = (),
        areaRng: Sequence[float] = (),
        iscrowd: bool | None = None,
    ) -> list[Any]:
        """Ids of the annotations of images and classes, with an area inside a range, crowds or
        not; what is empty filters nothing."""
        images, classes = _listed(imgIds), _listed(catIds)
        if len(images):
            found = [one for image in images for one in self.imgToAnns.get(image, ())]
        else:
            found = self.dataset["annotations"]
        if len(classes):
            wanted = set(classes)
            found = [one for one in found if one["category_id"] in wanted]
        if len(areaRng):
            found = [one for one in found if areaRng[0] < one["area"] < areaRng[1]]
        if iscrowd is not None:
            found = [one for one in found if one["iscrowd"] == iscrowd]
        return [one["id"] for one in found]

    def getCatIds(self, catNms: Any = (), supNms: Any = (), catIds: Any = ()) -> list[Any]:
        """Ids of the classes of some names, supercategories or ids."""
        found = self.dataset["categories"]
        for key, given in (("name", catNms), ("supercategory", supNms), ("id", catIds)):
            wanted = [given] if isinstance(given, str) else _listed(given)
            if len(wanted):
                found = [one for one in found if one[key] in wanted]
        return [one["id"] for one in found]

    def getImgIds(self, imgIds: Any = (), catIds: Any = ()) -> list[Any]:
        """Ids of the images, or of those among them that have all the given classes."""
        images, classes = _listed(imgIds), _listed(catIds)
        if not len(images) and not len(classes):
            return list(self.imgs)
        found = set(images)
        for place, one in enumerate(classes):
            having = set(self.catToImgs.get(one, ()))
            found = having if place == 0 and not found else found & having
        return list(found)

    def loadAnns(self, ids: Any = ()) -> list[Record]:
        """The annotations with the given ids."""
        return [self.anns[one] for one in _listed(ids)]

    def loadCats(self, ids: Any = ()) -> list[Record]:
        """The classes with the given ids."""
        return [self.cats[one] for one in _listed(ids)]

    def loadImgs(self, ids: Any = ()) -> list[Record]:
        """The images with the given ids."""
        return [self.imgs[one] for one in _listed(ids)]

    def loadRes(self, resFile: Any) -> COCO:
        """Results beside these annotations: a file's path, a list of dicts, or an [N, 7] array. The
        dicts get an id, an area, and the box or outline that they lack."""
        found = COCO()
        found.dataset["info"] = copy.deepcopy(self.dataset.get("info", {}))
        found.dataset["images"] = list(self.dataset["images"])
        print("Loading and preparing results...")
        start = time.time()
        results = resFile
        if isinstance(resFile, str | os.PathLike):
            results = json.loads(Path(resFile).read_bytes())
        elif isinstance(resFile, np.ndarray):
            results = self.loadNumpyAnnotations(resFile)
        if not isinstance(results, list):
            raise InputError(f"results are a {type(results).__name__}, expected a list of dicts")
        unknown = {one["image_id"] for one in results} - set(self.getImgIds())
        if unknown:
            raise InputError(
                f"Results do not correspond to current coco set: it has no image {min(unknown)}"
            )
        if not results:  # as pycocotools fails on them, and as callers catch it
            raise IndexError("the results are empty")
        if "caption" in results[0]:
            named = {one["image_id"] for one in results}
            found.dataset["images"] = [one for one in found.dataset["images"] if one["id"] in named]
        else:
            found.dataset["categories"] = copy.deepcopy(self.dataset["categories"])
            complete_results(results)
            for one in results:
                one["iscrowd"] = 0
        for place, one in enumerate(results):
            one["id"] = place + 1
        print(f"DONE (t={time.time() - start:0.2f}s)")
        found.dataset["annotations"] = results
        found.createIndex()
        return found

    def loadNumpyAnnotations(self, data: NDArray[Any]) -> list[Record]:
        """Result dicts of an [N, 7] array: image id, x, y, width, height, score, class id."""
        print("Converting ndarray to lists...")
        if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != 7:
            raise InputError(f"results have shape {np.shape(data)}, expected (N, 7)")
        print(data.shape)
        for row in range(0, len(data), 1_000_000):
            print(f"{row}/{len(data)}")
        return [
            {
                "image_id": int(row[0]),
                "bbox": list(row[1:5]),
                "score": row[5],
                "category_id": int(row[6]),
            }
            for row in data
        ]

    def annToRLE(self, ann: Record) -> Any:
        """The mask of an annotation, encoded."""
        return encoded_mask(ann, self.imgs)

    def annToMask(self, ann: Record) -> NDArray[np.uint8]:
        """[H, W] pixels of an annotation's mask."""
        return mask_functions.decode(self.annToRLE(ann))

    def download(self, tarDir: str | None = None, imgIds: Any = ()) -> int | None:
        """Downloads missing images to a folder."""
        if tarDir is None:
            print("Please specify target directory")
            return -1
        images = self.loadImgs(imgIds) if len(_listed(imgIds)) else list(self.imgs.values())
        Path(tarDir).mkdir(parents=True, exist_ok=True)
        for place, image in enumerate(images):
            start = time.time()
            path = Path(tarDir) / image["file_name"]
            if not path.exists():
                urlretrieve(image["coco_url"], path)
            spent = time.time() - start
            print(f"downloaded {place}/{len(images)} images (t={spent:0.1f}s)")
        return None

    def showAnns(self, anns: Sequence[Record], draw_bbox: bool = False) -> int | None:
        """Draws annotations on the current axes of matplotlib, or prints captions."""
        if len(anns) == 0:
            return 0
        if "segmentation" not in anns[0] and "caption" in anns[0]:
            for one in anns:
                print(one["caption"])
            return None
        import matplotlib.pyplot as plt
        from matplotlib.patches import Polygon

        axes = plt.gca()
        axes.set_autoscale_on(False)
        for one in anns:
            colour = np.random.default_rng().uniform(0.4, 1.0, 3)
            outlines = []
            segmentation = one.get("segmentation", [])
            if isinstance(segmentation, list):
                outlines = [np.reshape(part, (-1, 2)) for part in segmentation]
            else:
                pixels = self.annToMask(one)
                shade = np.broadcast_to(colour, (*pixels.shape, 3))
                axes.imshow(np.dstack([shade, pixels * 0.5]))
            if draw_bbox:
                x, y, w, h = one["bbox"]
                outlines.append(np.array([[x, y], [x, y + h], [x + w, y + h], [x + w, y]]))
            for outline in outlines:
                axes.add_patch(Polygon(outline, facecolor=(*colour, 0.4), edgecolor=colour))
        return None


def complete_results(results: Sequence[Record]) -> None:
    """Adds the area, and the missing box or outline, to results; the first one decides whether they
    have boxes."""
    first = results[0]
    if len(first.get("bbox", ())):
        for one in results:
            x, y, w, h = one["bbox"]
            one.setdefault("segmentation", [[x, y, x, y + h, x + w, y + h, x + w, y]])
            one["area"] = w * h
    elif "segmentation" in first:
        encoded = [one["segmentation"] for one in results]
        areas, boxes = mask_functions.area(encoded), mask_functions.toBbox(encoded)
        for one, area, box in zip(results, areas, boxes, strict=True):
            one["area"] = area
            one.setdefault("bbox", box)
    elif "keypoints" in first:
        raise LvdetError(KEYPOINTS)
    else:
        raise InputError("results have neither bbox nor segmentation")


def encoded_mask(ann: Record, images: Mapping[Any, Record]) -> Any:
    """The mask of an annotation as {size, counts}: polygons and run lengths are encoded, with the
    size of their image."""
    segmentation = ann["segmentation"]
    if isinstance(segmentation, list):
        image = images[ann["image_id"]]
        size = image["height"], image["width"]
        return mask_functions.merge(mask_functions.frPyObjects(segmentation, *size))
    if isinstance(segmentation["counts"], list):
        return mask_functions.frPyObjects(segmentation, 0, 0)
    return segmentation


def _listed(ids: Any) -> Any:
    """Ids as a list; a single id is allowed."""
    return ids if isinstance(ids, Iterable) and hasattr(ids, "__len__") else [ids]
