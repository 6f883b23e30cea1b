"""LVIS: an annotation file as dicts, with lvis's names."""

from __future__ import annotations

import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlretrieve

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.integrations.pycocotools import mask as mask_functions
from lvdet.integrations.pycocotools.coco import encoded_mask

__all__ = ["LVIS"]

Record = dict[str, Any]


class LVIS:
    """An annotation file. `dataset` is live: change it, and call `_create_index`."""

    def __init__(self, annotation_path: str | os.PathLike[str]) -> None:
        self.logger = logging.getLogger(__name__)
        self.logger.info("Loading annotations.")
        self.dataset: Record = self._load_json(annotation_path)
        if not isinstance(self.dataset, dict):
            raise InputError(f"{annotation_path}: not an annotation file: expected a JSON object")
        self._create_index()

    def _load_json(self, path: str | os.PathLike[str]) -> Any:
        return json.loads(Path(path).read_bytes())

    def _create_index(self) -> None:
        self.logger.info("Creating index.")
        self.anns: dict[Any, Record] = {one["id"]: one for one in self.dataset["annotations"]}
        self.imgs: dict[Any, Record] = {one["id"]: one for one in self.dataset["images"]}
        self.cats: dict[Any, Record] = {one["id"]: one for one in self.dataset["categories"]}
        self.img_ann_map: defaultdict[Any, list[Record]] = defaultdict(list)
        self.cat_img_map: defaultdict[Any, list[Any]] = defaultdict(list)
        for one in self.dataset["annotations"]:
            self.img_ann_map[one["image_id"]].append(one)
            self.cat_img_map[one["category_id"]].append(one["image_id"])
        self.logger.info("Index created.")

    def get_ann_ids(
        self,
        img_ids: Iterable[Any] | None = None,
        cat_ids: Iterable[Any] | None = None,
        area_rng: Sequence[float] | None = None,
    ) -> list[Any]:
        """Ids of the annotations of images and classes, with an area inside a range. Where classes
        or a range are given, empty annotations are left out."""
        if img_ids is None:
            found = self.dataset["annotations"]
        else:
            found = [one for image in img_ids for one in self.img_ann_map.get(image, ())]
        if cat_ids is None and area_rng is None:
            return [one["id"] for one in found]
        low, high = (0, float("inf")) if area_rng is None else area_rng
        classes = None if cat_ids is None else set(cat_ids)
        return [
            one["id"]
            for one in found
            if (classes is None or one["category_id"] in classes) and low < one["area"] < high
        ]

    def get_cat_ids(self) -> list[Any]:
        """Ids of all classes."""
        return list(self.cats)

    def get_img_ids(self) -> list[Any]:
        """Ids of all images."""
        return list(self.imgs)

    def load_anns(self, ids: Iterable[Any] | None = None) -> list[Record]:
        """The annotations of some ids, or all."""
        return _load(self.anns, ids)

    def load_cats(self, ids: Iterable[Any] | None) -> list[Record]:
        """The classes of some ids, or all."""
        return _load(self.cats, ids)

    def load_imgs(self, ids: Iterable[Any] | None) -> list[Record]:
        """The images of some ids, or all."""
        return _load(self.imgs, ids)

    def download(self, save_dir: str, img_ids: Iterable[Any] | None = None) -> None:
        """Downloads missing images to a folder."""
        Path(save_dir).mkdir(parents=True, exist_ok=True)
        for image in self.load_imgs(img_ids):
            path = Path(save_dir) / image["coco_url"].split("/")[-1]
            if not path.exists():
                urlretrieve(image["coco_url"], path)

    def ann_to_rle(self, ann: Record) -> Any:
        """The mask of an annotation, encoded."""
        return encoded_mask(ann, self.imgs)

    def ann_to_mask(self, ann: Record) -> NDArray[np.uint8]:
        """[H, W] pixels of an annotation's mask."""
        return mask_functions.decode(self.ann_to_rle(ann))


def _load(records: Mapping[Any, Record], ids: Iterable[Any] | None) -> list[Record]:
    return list(records.values()) if ids is None else [records[one] for one in ids]
