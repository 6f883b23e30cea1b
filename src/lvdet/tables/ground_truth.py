"""The contents of the images: annotations, classes and the federated lists."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.tables.categories import Categories
from lvdet.tables.columns import require_columns, require_rows
from lvdet.tables.description import counted, describe_html, describe_line
from lvdet.tables.masks import Masks


@dataclass(frozen=True, eq=False, repr=False)
class Images:
    """The images, by ascending id; elsewhere an image is its row in this table.

    ids: [I] int64; height, width: [I] int32, pixels; file_names: I strings ("" unknown);
    addresses: I strings, the last two parts of addresses on the web ("" unknown), or none at all.
    """

    ids: NDArray[np.int64]
    height: NDArray[np.int32]
    width: NDArray[np.int32]
    file_names: tuple[str, ...]
    addresses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(self.ids)
        require_columns(
            self,
            "images",
            {
                "ids": (np.int64, (count,)),
                "height": (np.int32, (count,)),
                "width": (np.int32, (count,)),
            },
        )
        if (self.ids[1:] <= self.ids[:-1]).any():
            raise InputError("images: ids must be strictly increasing")

    def __repr__(self) -> str:
        return describe_line(self, counted(len(self), "image"))

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, eq=False)
class ImageLists:
    """A list of classes for each image: `category[offsets[i]:offsets[i + 1]]`.

    offsets: [I + 1] int64; category: int32 rows of `Categories`.
    """

    offsets: NDArray[np.int64]
    category: NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class GroundTruth:
    """An annotation file as columns; rows are annotations in file order.

    id:       [M] int64, the file's annotation ids, all different
    image:    [M] int32, row of `images`
    category: [M] int32, row of `categories`
    box:      [M, 4] float64, x, y, width, height in pixels
    area:     [M] float64, the file's `area` field
    ignore:   [M] bool, LVIS's `ignore`
    crowd:    [M] bool, COCO's `iscrowd`
    masks:    M masks, or None if they were not read
    negative, not_exhaustive: LVIS's federated lists; None for COCO files, where every class counts
              in every image
    source:   the name of this table in messages
    """

    images: Images
    categories: Categories
    id: NDArray[np.int64]
    image: NDArray[np.int32]
    category: NDArray[np.int32]
    box: NDArray[np.float64]
    area: NDArray[np.float64]
    ignore: NDArray[np.bool_]
    crowd: NDArray[np.bool_]
    masks: Masks | None
    negative: ImageLists | None
    not_exhaustive: ImageLists | None
    source: str = "annotations"

    def __repr__(self) -> str:
        return describe_line(
            self,
            counted(len(self.images), "image"),
            counted(len(self.categories), "class", "classes"),
            counted(len(self), "object"),
            "" if self.masks is None else "masks",
        )

    def _repr_html_(self) -> str:
        facts = {
            "format": "LVIS" if self.federated else "COCO",
            "images": len(self.images),
            "classes": len(self.categories),
            "objects": len(self),
            "masks": "no" if self.masks is None else "yes",
            "source": self.source,
        }
        return describe_html(self, facts)

    def __post_init__(self) -> None:
        rows = len(self.id)
        require_columns(
            self,
            self.source,
            {
                "id": (np.int64, (rows,)),
                "image": (np.int32, (rows,)),
                "category": (np.int32, (rows,)),
                "box": (np.float64, (rows, 4)),
                "area": (np.float64, (rows,)),
                "ignore": (np.bool_, (rows,)),
                "crowd": (np.bool_, (rows,)),
            },
        )
        require_rows(self.source, "image", self.image, len(self.images))
        require_rows(self.source, "category", self.category, len(self.categories))
        if self.masks is not None and len(self.masks) != rows:
            raise InputError(f"{self.source}: {len(self.masks)} masks for {rows} annotations")
        for name in ("negative", "not_exhaustive"):
            lists: ImageLists | None = getattr(self, name)
            if lists is not None:
                images = len(self.images)
                if (lists.offsets[1:] < lists.offsets[:-1]).any() or lists.offsets[0] != 0:
                    raise InputError(f"{self.source}: {name}: offsets must increase from 0")
                require_columns(
                    lists,
                    f"{self.source}: {name}",
                    {
                        "offsets": (np.int64, (images + 1,)),
                        "category": (np.int32, (int(lists.offsets[-1]),)),
                    },
                )
                require_rows(
                    f"{self.source}: {name}", "category", lists.category, len(self.categories)
                )

    def __len__(self) -> int:
        return len(self.id)

    def where(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> GroundTruth:
        """The annotations selected by an index array or a mask; images and lists are unchanged."""
        return replace(
            self,
            id=self.id[rows],
            image=self.image[rows],
            category=self.category[rows],
            box=self.box[rows],
            area=self.area[rows],
            ignore=self.ignore[rows],
            crowd=self.crowd[rows],
            masks=None if self.masks is None else self.masks[rows],
        )

    @property
    def federated(self) -> bool:
        """True for LVIS files: a class counts only in images where it was verified."""
        return self.negative is not None
